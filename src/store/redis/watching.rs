//! Watching: regions change by other nodes too, so their signals are looked up again and again.
//!
//! A region's signal is one small key, written by every step that the region takes. A push would
//! be faster by some milliseconds and could be lost; what must not be late (closes, take-overs) is
//! known ahead from the last signal.

use std::sync::{Arc, Weak};

use futures_util::{StreamExt, stream};
use redis::{Value, pipe};
use serde::Deserialize;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval};

use super::{
    Shared,
    cell::Cell,
    link::Lane,
    reply::{bytes, clock},
    unread,
    wire::{self, unpack},
};
use crate::{
    domain::StoreTime,
    protocol::{Command, Sweep},
    store::{RegionSignal, StoreError},
    telemetry,
};

/// Time between two looks: a fifth of the shortest window.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time between two tellings of what the connections go through.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Regions looked up in one pipeline where they lie on one server.
const AT_ONCE: usize = 100;

/// Looks under way at once where each region may lie elsewhere.
const LOOKS_AT_ONCE: usize = 64;

#[derive(Deserialize)]
struct StoredSignal {
    t: StoreTime,
    s: RegionSignal,
}

/// Follows every region that the node has met, until the store is gone.
pub(super) async fn poll(shared: Weak<Shared>) {
    let mut tells = Instant::now();
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.look_at_all().await;
        if tells.elapsed() >= TELL_EVERY {
            tells = Instant::now();
            let in_flight = [Lane::Work, Lane::Read].map(|lane| shared.link.in_flight(lane));
            let in_flight = in_flight.iter().sum::<usize>() + shared.lease.in_flight(Lane::Lease);
            let counters = shared.link.counters() + shared.lease.counters();
            telemetry::store_link(&counters, in_flight);
        }
    }
}

impl Shared {
    async fn look_at_all(self: &Arc<Self>) {
        let cells: Vec<Arc<Cell>> = self
            .cells
            .load()
            .values()
            .filter(|cell| cell.known().is_some())
            .cloned()
            .collect();
        // one unreachable server costs its own regions a look, and no other
        let at_once = if self.link.is_cluster() { 1 } else { AT_ONCE };
        let chunks: Vec<Vec<Arc<Cell>>> = cells.chunks(at_once).map(<[_]>::to_vec).collect();
        stream::iter(chunks)
            .for_each_concurrent(LOOKS_AT_ONCE, |chunk| async move {
                let keys: Vec<&Cell> = chunk.iter().map(AsRef::as_ref).collect();
                let Ok(found) = self.signals(&keys).await else {
                    for cell in keys {
                        cell.not_seen();
                    }
                    return;
                };
                for (cell, signal) in chunk.iter().zip(found) {
                    if took_in(cell, &signal).is_err() {
                        self.wake(cell);
                    }
                }
            })
            .await;
    }

    /// Looks a region's signal up.
    pub(super) async fn look(&self, cell: &Cell) -> Result<(), StoreError> {
        let found = self.signals(&[cell]).await?;
        match found.first() {
            Some(signal) => took_in(cell, signal),
            None => Err(StoreError::UnknownRegion),
        }
    }

    async fn signals(&self, cells: &[&Cell]) -> Result<Vec<Value>, StoreError> {
        let Some(first) = cells.first() else {
            return Ok(Vec::new());
        };
        let mut pipeline = pipe();
        for cell in cells {
            pipeline.cmd("GET").arg(&cell.keys().signal);
        }
        pipeline.cmd("TIME");
        let slot_key = &first.keys().signal;
        let found = self.link.read(Lane::Read, slot_key, &pipeline).await;
        let mut found = found.map_err(unread)?;
        if let Some(time) = found.pop() {
            let now = clock(&time)?;
            for cell in cells {
                cell.clock.read(now);
            }
        }
        Ok(found)
    }

    /// A region that this node knows is not there: its next step begins a new generation.
    fn wake(self: &Arc<Self>, cell: &Arc<Cell>) {
        let (shared, cell) = (self.clone(), cell.clone());
        tokio::spawn(async move {
            let _ = shared
                .execute(&cell, &Command::Sweep(Sweep {}), wire::decode)
                .await;
        });
    }
}

fn took_in(cell: &Cell, signal: &Value) -> Result<(), StoreError> {
    let Some(signal) = bytes(signal)? else {
        return Err(StoreError::UnknownRegion);
    };
    let StoredSignal { t, s } = unpack(signal)?;
    cell.saw(t, s);
    Ok(())
}
