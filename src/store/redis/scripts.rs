//! The scripts: one file a command, behind the parts that they share.

use std::sync::LazyLock;

use super::link::Script;
use crate::protocol::Command;

macro_rules! scripts {
    ($($name:ident: $($variant:pat_param)|+ => $file:literal;)*) => {
        /// Every script, prepared once.
        pub(super) struct Scripts {
            $($name: Script,)*
        }

        impl Scripts {
            fn prepare() -> Self {
                Self {
                    $($name: Script::new(concat!(
                        include_str!("lua/region.lua"),
                        include_str!("lua/records.lua"),
                        include_str!("lua/commit.lua"),
                        include_str!("lua/enter.lua"),
                        include_str!("lua/claims.lua"),
                        include_str!("lua/windows.lua"),
                        include_str!(concat!("lua/", $file)),
                    )),)*
                }
            }

            /// The script that executes `command`.
            pub(super) fn of(&self, command: &Command) -> &Script {
                match command {
                    $($($variant)|+ => &self.$name,)*
                }
            }
        }
    };
}

scripts! {
    ping: Command::Ping(_) => "ping.lua";
    remove_driver: Command::RemoveDriver(_) => "remove_driver.lua";
    intake: Command::Intake(_) => "intake.lua";
    cancel: Command::Cancel(_) => "cancel.lua";
    confirm: Command::Confirm(_) => "confirm.lua";
    release: Command::Release(_) => "release.lua";
    complete: Command::Complete(_) => "complete.lua";
    extend: Command::Extend(_) => "extend.lua";
    take_window: Command::TakeWindow(_) => "take_window.lua";
    claim_batch: Command::ClaimBatch(_) => "claim_batch.lua";
    seal: Command::Seal(_) => "seal.lua";
    begin_own: Command::BeginOwn(_) => "begin_own.lua";
    claim_own: Command::ClaimOwn(_) => "claim_own.lua";
    finish_own: Command::FinishOwn(_) => "finish_own.lua";
    acquire: Command::Acquire(_) => "acquire.lua";
    renew: Command::Renew(_) => "renew.lua";
    resign: Command::Resign(_) => "resign.lua";
    configure: Command::Configure(_) => "configure.lua";
    reconcile: Command::Reconcile(_) => "reconcile.lua";
    sweep: Command::Sweep(_) => "sweep.lua";
}

/// The scripts of this build.
pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(Scripts::prepare);

/// Raises a region's generation in the registry: KEYS 1 the registry; ARGV 1 region, 2 generation.
/// Returns the generation that stands there.
pub(super) static REGISTER: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/register.lua")));

/// Runs every command of the scripts once, on a key of its own.
pub(super) static PERMISSIONS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/permissions.lua")));

/// Tells that a node is alive, and who else is.
pub(super) static HEARTBEAT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/heartbeat.lua")));
