//! Pings between two supply entries, brought down to the newest of each driver.

use std::collections::{BTreeMap, HashSet};

use super::entry::SupplyEntry;
use crate::{
    domain::{DriverId, RegionId, UnixMs},
    protocol::{EntryCode, Patch, Ping, PingAnswer, Pings},
};

/// The newest pings of a region since its last supply entry.
pub(super) struct Coalesced {
    from: UnixMs,
    to: UnixMs,
    pings: BTreeMap<DriverId, Ping>,
    accepted: u64,
    stale: u64,
    rejected: BTreeMap<EntryCode, u64>,
    calls: u64,
}

impl Coalesced {
    /// Nothing yet.
    pub(super) fn at(at: UnixMs) -> Self {
        Self {
            from: at,
            to: at,
            pings: BTreeMap::new(),
            accepted: 0,
            stale: 0,
            rejected: BTreeMap::new(),
            calls: 0,
        }
    }

    /// Adds the pings of one call, answered at `at`. A refused ping is counted only; whether one is
    /// stale is told here by its time, as the protocol does.
    pub(super) fn add(&mut self, at: UnixMs, pings: Pings, answer: &PingAnswer) {
        self.to = self.to.max(at);
        self.calls += 1;
        self.accepted += u64::from(answer.accepted);
        self.stale += u64::from(answer.stale);
        let mut refused = HashSet::with_capacity(answer.rejected.len());
        for rejected in &answer.rejected {
            refused.insert(rejected.index);
            *self.rejected.entry(rejected.code).or_default() += 1;
        }
        for (index, ping) in pings.pings.into_iter().enumerate() {
            if !refused.contains(&index) {
                self.add_ping(ping);
            }
        }
    }

    fn add_ping(&mut self, ping: Ping) {
        match self.pings.get_mut(&ping.id) {
            None => {
                self.pings.insert(ping.id.clone(), ping);
            }
            Some(known) if known.at_ms < ping.at_ms => {
                let before = std::mem::replace(known, ping);
                keep(&mut known.heading_deg, before.heading_deg);
                keep(&mut known.speed_kmh, before.speed_kmh);
                keep(&mut known.vehicle_class, before.vehicle_class);
                keep(&mut known.acceptance_rate, before.acceptance_rate);
                keep(&mut known.idle_since_ms, before.idle_since_ms);
                keep(&mut known.trip_end, before.trip_end);
            }
            Some(_) => {}
        }
    }

    /// Calls that carried these pings.
    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// The entry that tells them.
    pub(super) fn entry(self, region: RegionId) -> SupplyEntry {
        SupplyEntry {
            region,
            from_ms: self.from,
            to_ms: self.to,
            pings: self.pings.into_values().collect(),
            accepted: self.accepted,
            stale: self.stale,
            rejected: self.rejected,
        }
    }
}

/// A field that the newer ping leaves out is as the older one said.
fn keep<T>(newer: &mut Patch<T>, older: Patch<T>) {
    if newer.is_keep() {
        *newer = older;
    }
}
