//! Regions on Redis: one server, Sentinel or Cluster, shared by many nodes.
//!
//! Each command of the protocol is one Lua script (`lua/`), which reads the region, takes the step
//! of [`crate::protocol`] and writes it, all at once and by the server's clock. The scripts are held
//! against the pure steps by a differential test. A node keeps of a region only the generation that
//! it knows and the signal that it saw last.
//!
//! What is promised rests on the server: `noeviction`, and on what it does not lose. Data loss is
//! noticed by the replication id and by the generation that nodes know, and begins a quarantine.

mod cell;
mod clock;
mod keys;
mod link;
mod parts;
mod pings;
mod read;
mod registry;
mod reply;
mod scripts;
mod stored;
#[cfg(test)]
mod tests;
mod watching;
mod wire;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::{sync::watch, task::AbortHandle};

use self::{
    cell::Cell,
    link::{CallError, Lane, Link},
    scripts::{HEARTBEAT, PERMISSIONS, SCRIPTS},
    wire::{Fate, Missing, Told, WireError},
};
use super::{Clock, RegionSignal, Store, StoreError, StoreFuture, StoreOptions, SystemClock};
use crate::{
    domain::{DurationMs, NodeId, RegionId},
    protocol::{Answer, Command, Query, Reply, RulesError},
    telemetry,
};

pub use link::{AddressError, LinkCounters, LinkError, LinkOptions, RedisAddress, ServerReport};

/// Why a Redis store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The rules of new regions cannot stand together.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The server cannot be reached, or will not do.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A command of the scripts is not permitted, or not known to the server.
    #[error("the scripts' commands cannot all be run: {0}")]
    Forbidden(Arc<str>),
    /// The thread for leadership calls could not be made.
    #[error("a thread could not be made: {0}")]
    Thread(#[from] std::io::Error),
}

/// Regions on Redis.
pub struct RedisStore {
    shared: Arc<Shared>,
    watching: AbortHandle,
}

/// What the store's tasks share.
struct Shared {
    link: Link,
    /// Leadership calls have connections and a thread of their own: no other call delays a renewal.
    lease: Link,
    options: StoreOptions,
    /// Dropped, it ends the thread for leadership calls.
    _lease_thread: watch::Sender<()>,
    /// The regions that this node has met.
    cells: ArcSwap<BTreeMap<RegionId, Arc<Cell>>>,
    /// Held to add a cell; readers do without.
    adding: Mutex<()>,
    count: watch::Sender<usize>,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore")
            .field("regions", &self.shared.cells.load().len())
            .finish_non_exhaustive()
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// A call that read nothing.
fn unread(error: CallError) -> StoreError {
    match error {
        CallError::NotExecuted(why) | CallError::Unknown(why) => StoreError::Unavailable(why),
        CallError::Refused(why) => StoreError::Broken(why),
    }
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotExecuted(why) => Self::Unavailable(why),
            CallError::Unknown(why) => Self::OutcomeUnknown(why),
            CallError::Refused(why) => Self::Broken(why),
        }
    }
}

impl From<WireError> for StoreError {
    fn from(error: WireError) -> Self {
        Self::Broken(error.to_string().into())
    }
}

impl RedisStore {
    /// Connects and checks the server. Tells what about the server is not as it should be.
    ///
    /// # Errors
    /// [`OpenError`]: the server cannot be reached, or would lose data by its configuration.
    pub async fn open(
        address: &RedisAddress,
        options: StoreOptions,
        link: LinkOptions,
    ) -> Result<(Self, ServerReport), OpenError> {
        options.check()?;
        let stop = watch::Sender::new(());
        let lease = lease_link(address.clone(), link, stop.subscribe()).await?;
        let link = Link::connect(address, link).await?;
        let report = link.check_server().await?;
        check_permissions(address, &link).await?;
        let shared = Arc::new(Shared {
            link,
            lease,
            options,
            cells: ArcSwap::default(),
            adding: Mutex::new(()),
            count: watch::Sender::new(0),
            _lease_thread: stop,
        });
        let watching = tokio::spawn(watching::poll(Arc::downgrade(&shared)));
        let watching = watching.abort_handle();
        Ok((Self { shared, watching }, report))
    }
}

/// Whether every command of the scripts is permitted: a script that is stopped midway has done half.
async fn check_permissions(address: &RedisAddress, link: &Link) -> Result<(), OpenError> {
    let checked = link.script(Lane::Work, &PERMISSIONS, &keys::PERMISSIONS, &[]);
    match checked.await {
        Ok(_) => Ok(()),
        Err(CallError::Refused(why)) => Err(OpenError::Forbidden(why)),
        Err(CallError::NotExecuted(reason) | CallError::Unknown(reason)) => {
            let address = address.to_string().into();
            Err(LinkError::Unreachable { address, reason }.into())
        }
    }
}

/// Connections for leadership calls, on a thread that does nothing else.
async fn lease_link(
    address: RedisAddress,
    options: LinkOptions,
    mut stopped: watch::Receiver<()>,
) -> Result<Link, OpenError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (connected, connecting) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("kheya-lease-io".into())
        .spawn(move || {
            runtime.block_on(async move {
                let link = Link::connect(&address, options).await;
                let _ = connected.send(link);
                // the connections live on this thread, as long as the store does
                while stopped.changed().await.is_ok() {}
            });
        })?;
    match connecting.await {
        Ok(link) => Ok(link?),
        Err(_) => Err(OpenError::Thread(std::io::Error::other("the thread ended"))),
    }
}

/// Reads the reply to a command.
type Decode<A> = fn(&Command, &[u8]) -> Result<Told<A>, WireError>;

/// How often a command is sent again because the generation or the region was not what the node
/// thought: once each.
const SENT_AT_MOST: usize = 4;

impl Shared {
    /// The link for a command.
    fn link_of(&self, command: &Command) -> (&Link, Lane) {
        match command {
            Command::Acquire(_) | Command::Renew(_) | Command::Resign(_) => {
                (&self.lease, Lane::Lease)
            }
            _ => (&self.link, Lane::Work),
        }
    }

    /// Runs a command's script once, as it is.
    async fn run<A>(
        &self,
        cell: &Cell,
        command: &Command,
        defaults: bool,
        decode: Decode<A>,
    ) -> Result<Told<A>, StoreError> {
        let known = cell
            .known()
            .map_or_else(String::new, |generation| generation.to_string());
        let (rules, document) = if defaults {
            let (rules, document) = self.options.of(cell.region());
            (wire::json(rules)?, &**document)
        } else {
            (String::new(), "")
        };
        let creates: &[u8] = if command.creates_region() { b"1" } else { b"" };
        let body = wire::encode(command)?;
        let args = [
            known.as_bytes(),
            creates,
            rules.as_bytes(),
            document.as_bytes(),
            &body,
        ];
        let (link, lane) = self.link_of(command);
        let keys = cell.keys().all();
        let reply = link.script(lane, SCRIPTS.of(command), &keys, &args).await?;
        let reply = reply::bytes(&reply)?.ok_or(WireError::Missing("the reply of a script"))?;
        Ok(decode(command, reply)?)
    }

    /// Executes a command, under the generation that holds now.
    async fn execute<A>(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        command: &Command,
        decode: Decode<A>,
    ) -> Result<A, StoreError> {
        let mut defaults = false;
        for _ in 0..SENT_AT_MOST {
            let told = self.run(cell, command, defaults, decode).await?;
            cell.clock.read(told.now);
            if let Some(signal) = told.signal {
                cell.saw(told.now, signal);
            }
            match told.fate {
                Fate::Answered(answer) => {
                    if let Some(generation) = told.generation
                        && cell.learn(generation)
                    {
                        // a region that nobody could find again must not be promised anything
                        self.register_new(cell).await?;
                    }
                    return Ok(answer);
                }
                Fate::Changed(changed) => {
                    // told once, by the node in whose call it was found out
                    if told.began {
                        telemetry::generation_changed(cell.region());
                        tracing::warn!(
                            region = %cell.region(),
                            generation = changed.generation.get(),
                            "data may be lost: a new generation begins, in quarantine"
                        );
                    }
                    cell.learn(changed.generation);
                    self.register_later(cell);
                }
                Fate::Missing(Missing::Defaults) => defaults = true,
                Fate::Missing(Missing::Unknown) => return Err(StoreError::UnknownRegion),
            }
        }
        Err(StoreError::Unavailable(
            "the store's generation changes again and again".into(),
        ))
    }
}

/// Tells the metrics of a call.
fn tell(kind: &'static str, started: Instant, error: Option<&StoreError>) {
    let failed = error.and_then(|error| match error {
        StoreError::Unavailable(_) => Some("unavailable"),
        StoreError::OutcomeUnknown(_) => Some("unknown"),
        StoreError::Broken(_) => Some("broken"),
        StoreError::UnknownRegion | StoreError::TooManyRegions(_) => None,
    });
    telemetry::store_call(kind, started.elapsed(), failed);
}

impl Store for RedisStore {
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer> {
        Box::pin(async move {
            let (started, kind) = (Instant::now(), command.name());
            let shared = self.shared.clone();
            let cell = shared.cell_for(region, command.creates_region()).await?;
            // goes on to its end although the caller stops waiting
            let running = tokio::spawn(async move {
                match command {
                    Command::Ping(pings) => pings::take_in(&shared, &cell, pings).await,
                    Command::Intake(intake) => parts::take_in(&shared, &cell, intake).await,
                    Command::Reconcile(telling) => parts::tell(&shared, &cell, telling).await,
                    command => shared.execute(&cell, &command, wire::decode).await,
                }
            });
            let answer = match running.await {
                Ok(answer) => answer,
                Err(_) => Err(StoreError::OutcomeUnknown("the call died".into())),
            };
            tell(kind, started, answer.as_ref().err());
            answer
        })
    }

    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            let started = Instant::now();
            let reply = read::query(&self.shared, region, query).await;
            tell("query", started, reply.as_ref().err());
            reply
        })
    }

    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>> {
        Box::pin(async move { self.shared.registered().await })
    }

    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>> {
        Box::pin(async move {
            let cell = self.shared.cell_for(region, false).await?;
            if !cell.is_seen() {
                self.shared.look(&cell).await?;
            }
            Ok(cell.subscribe())
        })
    }

    fn watch_regions(&self) -> watch::Receiver<usize> {
        self.shared.count.subscribe()
    }

    fn clock(&self, region: &RegionId) -> Arc<dyn Clock> {
        match self.shared.cells.load().get(region) {
            Some(cell) => cell.clock.clone(),
            None => Arc::new(SystemClock),
        }
    }

    fn alive<'a>(&'a self, node: &'a NodeId, life: DurationMs) -> StoreFuture<'a, Vec<NodeId>> {
        Box::pin(async move {
            let life = life.get().to_string();
            let args = [node.as_str().as_bytes(), life.as_bytes()];
            let nodes = self
                .shared
                .link
                .script(Lane::Work, &HEARTBEAT, &[keys::NODES], &args)
                .await?;
            let mut alive = Vec::new();
            for node in reply::list(&nodes)? {
                if let Ok(node) = NodeId::new(reply::text(node)?) {
                    alive.push(node);
                }
            }
            Ok(alive)
        })
    }
}
