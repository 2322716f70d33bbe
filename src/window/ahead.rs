//! What a region's windows remember of each other where they look ahead: the pickups asked for
//! lately, and since when requests are planned.
//!
//! The leader keeps it from window to window. Every window also notes its part beside its sealed
//! decisions, which stores keep for the last 50 windows: a new leader reads them back, on either
//! store by the same calls. So after a change of leaders pickups are known from 50 windows at most,
//! and since when a request is planned as long as the last sealed window is known.
//!
//! Reading back is bounded by time: no window is late for it. What was read by then stands, the
//! newest first. Where not even the newest note could be read, whoever waited before counts as
//! planned since it was asked for, so that the bound of a plan holds in any case.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::{
    config::RegionValues,
    decision::{
        DemandSource, Foresight, MAX_PHANTOMS, RecentPickups, Waiting, WindowDecision, phantoms_of,
    },
    demand::DemandModel,
    domain::{DurationMs, Place, RegionId, RequestId, UnixMs, WindowSeq},
    protocol::{SnapshotRequest, rules::KEPT_DECISIONS},
    store::Store,
    supply::Position,
};

/// What a region's windows remember of each other; shared by the region's tasks of one node.
pub(super) type SharedMemory = Arc<Mutex<AheadMemory>>;

/// What the windows so far saw.
#[derive(Debug, Clone, Default)]
pub(super) struct AheadMemory {
    /// The window up to which it is complete.
    up_to: Option<WindowSeq>,
    pickups: RecentPickups,
    planned: BTreeMap<RequestId, UnixMs>,
}

/// What a window adds, as it stands beside its decisions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AheadNote {
    /// Its requests that were planned, by it or before, and still wait.
    planned: Vec<PlannedSince>,
    /// Pickups that it saw first.
    pickups: Vec<Asked>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlannedSince {
    request_id: RequestId,
    since_ms: UnixMs,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Asked {
    request_id: RequestId,
    at_ms: UnixMs,
    pickup: Place,
}

/// The part of a sealed window's decisions that is read back.
#[derive(Deserialize)]
struct Noted {
    #[serde(default)]
    ahead: Option<AheadNote>,
}

/// A window that looks ahead, from its reading to its seal.
pub(super) struct WindowAhead {
    seq: WindowSeq,
    memory: AheadMemory,
    /// Who is planned could not be read back.
    unsure: bool,
    note: AheadNote,
}

impl WindowAhead {
    /// What window `seq` may know: from the node's own memory, or read back from the store, for as
    /// long as `reading`, when another node decided the window before.
    pub(super) async fn recall(
        store: &dyn Store,
        region: &RegionId,
        shared: &SharedMemory,
        seq: WindowSeq,
        since: UnixMs,
        reading: Duration,
    ) -> Self {
        let own = shared.lock().clone();
        let before = seq.get().checked_sub(1).map(WindowSeq::new);
        let (memory, unsure) = if own.up_to.is_some() && own.up_to == before {
            (own, false)
        } else {
            read_back(store, region, seq, since, Instant::now() + reading).await
        };
        if unsure {
            tracing::warn!(%region, window_seq = seq.get(), "who is planned could not be read back");
        }
        Self {
            seq,
            memory,
            unsure,
            note: AheadNote::default(),
        }
    }

    /// What a window of these requests, read at `now`, knows of what comes next: of the next riders
    /// what was `learned`, or that they are as those of late.
    pub(super) fn foresight(
        &mut self,
        config: &RegionValues,
        learned: Option<&DemandModel>,
        requests: &[SnapshotRequest],
        now: UnixMs,
    ) -> Foresight {
        let from = now - config.demand_ahead_ms;
        self.memory.pickups.forget_until(from);
        for request in requests {
            let at_ms = request.requested_at_ms;
            let pickup = request.draft.pickup;
            let new = at_ms > from && config.demand_ahead_ms > DurationMs::ZERO;
            if new
                && self
                    .memory
                    .pickups
                    .see(&request.draft.id, at_ms, pickup.into())
            {
                self.note.pickups.push(Asked {
                    request_id: request.draft.id.clone(),
                    at_ms,
                    pickup,
                });
            }
        }
        if self.unsure {
            let waited = requests.iter().filter(|request| request.left_over > 0);
            let planned = waited.map(|request| (request.draft.id.clone(), request.requested_at_ms));
            self.memory.planned.extend(planned);
        }
        let waiting = requests.iter().filter_map(|request| {
            let planned_since_ms = self.memory.planned.get(&request.draft.id).copied();
            let plain = request.requested_at_ms + config.max_wait_ms;
            let deadline_ms = Some(request.deadline_ms).filter(|deadline| *deadline != plain);
            let known = planned_since_ms.is_some() || deadline_ms.is_some();
            known.then(|| Waiting {
                request_id: request.draft.id.clone(),
                planned_since_ms,
                deadline_ms,
            })
        });
        let waiting = waiting.collect();
        let recent = &self.memory.pickups;
        let source = learned.map_or(recent as &dyn DemandSource, |model| model);
        Foresight::new(phantoms_of(source, config, now), waiting)
    }

    /// Takes in what the window decided at `now`: who was planned is so since then, or since before.
    /// `still_waits` says which requests got no car after all.
    pub(super) fn decided(
        &mut self,
        decision: &WindowDecision,
        now: UnixMs,
        still_waits: impl Fn(&RequestId) -> bool,
    ) {
        for request in decision.planned() {
            self.memory.planned.entry(request.clone()).or_insert(now);
        }
        self.memory
            .planned
            .retain(|request, _| still_waits(request));
        let planned = self.memory.planned.iter();
        self.note.planned = planned
            .map(|(request_id, since_ms)| PlannedSince {
                request_id: request_id.clone(),
                since_ms: *since_ms,
            })
            .collect();
    }

    /// What the window adds, for its sealed decisions.
    pub(super) fn note(&self) -> &AheadNote {
        &self.note
    }

    /// Longest time since a window first planned one of the requests planned at `now`, in seconds.
    pub(super) fn planned_age_s(&self, decision: &WindowDecision, now: UnixMs) -> Option<f64> {
        let since = decision.planned().map(|request| {
            let since = self.memory.planned.get(request).copied();
            (now - since.unwrap_or(now)).as_seconds()
        });
        since.reduce(f64::max)
    }

    /// The window was sealed: the node remembers what it saw.
    pub(super) fn remember(mut self, shared: &SharedMemory) {
        self.memory.up_to = Some(self.seq);
        *shared.lock() = self.memory;
    }
}

/// What the windows before `seq` noted, the newest first, as far back as `since`, as they are kept,
/// and as they can be read until `by`; and whether not even the newest note could be. Windows that
/// nobody decided noted nothing.
async fn read_back(
    store: &dyn Store,
    region: &RegionId,
    seq: WindowSeq,
    since: UnixMs,
    by: Instant,
) -> (AheadMemory, bool) {
    let mut memory = AheadMemory::default();
    let mut newest = true;
    let kept = 1..=KEPT_DECISIONS as u64;
    for before in kept.map_while(|back| seq.get().checked_sub(back)) {
        let view = match timeout_at(by, store.report(region, WindowSeq::new(before))).await {
            Ok(Ok(Some(view))) => view,
            Ok(Ok(None)) => break,
            Ok(Err(_)) | Err(_) => return (memory, newest),
        };
        let decisions = view.decisions.as_deref();
        let noted = decisions.and_then(|text| serde_json::from_str::<Noted>(text).ok());
        if let Some(note) = noted.and_then(|noted| noted.ahead) {
            memory.take_in(note, newest);
            newest = false;
        }
        let full = memory.pickups.len() >= MAX_PHANTOMS;
        if (full || view.report.opened_at_ms <= since) && !newest {
            break;
        }
    }
    (memory, false)
}

impl AheadMemory {
    /// Takes in what a window noted; only the newest knows who is planned.
    fn take_in(&mut self, note: AheadNote, newest: bool) {
        for asked in note.pickups {
            let pickup = Position::new(asked.pickup);
            self.pickups.see(&asked.request_id, asked.at_ms, pickup);
        }
        if newest {
            let planned = note.planned.into_iter();
            self.planned = planned
                .map(|planned| (planned.request_id, planned.since_ms))
                .collect();
        }
    }
}

#[cfg(test)]
mod tests;
