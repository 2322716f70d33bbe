//! What a log tells, entry by entry.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    decision::{WindowDecision, WindowSnapshot},
    domain::{NodeId, RegionId, RequestId, UnixMs, WindowId, WindowSeq},
    protocol::{Answer, Command, EntryCode, Ping},
};

/// The format that this version writes, and the only one that it reads.
pub const LOG_FORMAT: &str = "kheya-log/1";

/// The first line of every segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`LOG_FORMAT`].
    pub format: Arc<str>,
    /// The version of the program that wrote it.
    pub version: Arc<str>,
    /// The node.
    pub node: NodeId,
    /// When the run of the node began.
    pub run_ms: UnixMs,
    /// The number of the segment within the run: 1, 2, 3, …
    pub segment: u64,
    /// When the segment began.
    pub started_ms: UnixMs,
}

/// A command that this node took in, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEntry {
    /// The region.
    pub region: RegionId,
    /// When it was answered, by the clock of the recording node.
    pub at_ms: UnixMs,
    /// What was asked.
    pub command: Command,
    /// What was answered; a refusal is an answer too.
    pub answer: Answer,
}

/// The pings that this node took in since the last such entry of the region, the newest of each
/// driver: its place, and every optional field that one of its pings told meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplyEntry {
    /// The region.
    pub region: RegionId,
    /// When the first of them was answered.
    pub from_ms: UnixMs,
    /// When the last of them was answered.
    pub to_ms: UnixMs,
    /// The newest of each driver, by driver id.
    pub pings: Vec<Ping>,
    /// Pings that were newer than what was known.
    pub accepted: u64,
    /// Pings that were not newer than what was known.
    pub stale: u64,
    /// Pings that were refused, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<EntryCode, u64>,
}

/// How a window was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The region's window, solved as a whole.
    Batch,
    /// The region's window, by the greedy fallback.
    Fallback,
    /// The dispatch tier's own window.
    Own,
}

impl WindowSource {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Fallback => "fallback",
            Self::Own => "own",
        }
    }
}

/// A window to record, as the window loop has it at hand when the window is over.
#[derive(Debug, Clone, Copy)]
pub struct WindowEntry<'a> {
    /// The region.
    pub region: &'a RegionId,
    /// The number of the region's window; absent for an own window.
    pub window_seq: Option<WindowSeq>,
    /// The caller's name of an own window.
    pub window_id: Option<&'a WindowId>,
    /// How it was decided.
    pub source: WindowSource,
    /// What it was decided on.
    pub snapshot: &'a WindowSnapshot,
    /// What was decided, before the claims.
    pub decision: &'a WindowDecision,
    /// Requests whose pair of `decision` was lost at the claim. Requests that lost a pair of the
    /// repair may stand here too.
    pub claim_lost: &'a [RequestId],
    /// The whole window after the repair, if there was one.
    pub repaired: Option<&'a WindowDecision>,
}

/// A window read back from a log.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedWindow {
    /// The region.
    pub region: RegionId,
    /// The number of the region's window; absent for an own window.
    pub window_seq: Option<WindowSeq>,
    /// The caller's name of an own window.
    pub window_id: Option<WindowId>,
    /// How it was decided.
    pub source: WindowSource,
    /// What it was decided on.
    pub snapshot: WindowSnapshot,
    /// What was decided, before the claims.
    pub decision: WindowDecision,
    /// Requests whose pair was lost at the claim.
    pub claim_lost: Vec<RequestId>,
    /// The whole window after the repair, if there was one.
    pub repaired: Option<WindowDecision>,
}

impl RecordedWindow {
    /// The window's name for people: `dhaka window 7`, `dhaka own window "w-1"`.
    pub fn name(&self) -> String {
        match (&self.window_seq, &self.window_id) {
            (_, Some(id)) => format!("{} own window {:?}", self.region, id.as_str()),
            (Some(seq), None) => format!("{} window {seq}", self.region),
            (None, None) => format!("{} window at {}", self.region, self.snapshot.now()),
        }
    }
}

/// Why entries are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// The writer could not keep up.
    QueueFull,
    /// The disk refused.
    Disk,
}

/// How many entries of a region are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lost {
    /// Commands other than pings.
    pub commands: u64,
    /// Calls that carried pings.
    pub ping_calls: u64,
    /// Windows.
    pub windows: u64,
}

impl Lost {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.commands + self.ping_calls + self.windows
    }

    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.commands += other.commands;
        self.ping_calls += other.ping_calls;
        self.windows += other.windows;
    }
}

/// Entries of a region are missing here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The region.
    pub region: RegionId,
    /// Why.
    pub cause: GapCause,
    /// How many.
    #[serde(flatten)]
    pub lost: Lost,
}

/// The run ended in order: nothing is missing after this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at_ms: UnixMs,
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A segment begins.
    Header(Header),
    /// A command was answered.
    Command(Box<CommandEntry>),
    /// Pings were taken in.
    Supply(SupplyEntry),
    /// A window was decided.
    Window(Box<RecordedWindow>),
    /// Entries are missing.
    Gap(Gap),
    /// The run ended in order.
    End(End),
}
