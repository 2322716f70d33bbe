//! Reconciling: after data loss the dispatch tier tells what is true.
//!
//! It is served at any time, not in a quarantine alone: a telling that comes late, or to an embedded
//! store that restarted empty, restores what does not contradict what was claimed since.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{
    claim::{ClaimKey, ClaimPhase, Pair},
    driver::{EntryCode, Rejected},
    outbox::{Reason, Source},
    region::Region,
    request::{RequestDraft, RequestRecord, RequestState, Taken},
    rules::{MAX_RECONCILED_A_STEP, MAX_SWEPT_A_STEP},
};
use crate::domain::{
    CostMs, DriverId, DurationMs, Fence, Generation, RequestId, StoreTime, UnixMs,
};

/// How far the sweep of trips that nobody told has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) enum Reconciling {
    /// Nothing to sweep.
    #[default]
    Idle,
    /// Everything is told: begin.
    Start,
    /// Go on after this driver.
    After(DriverId),
}

/// A trip that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TripTold {
    /// The driver.
    pub driver_id: DriverId,
    /// The request.
    pub request_id: RequestId,
}

/// Tells what is true; long tellings come in several calls, the last of them `done`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reconcile {
    /// The generation that is told; any other is refused.
    pub generation: Generation,
    /// Trips under way, at most [`MAX_RECONCILED_A_STEP`].
    pub on_trip: Vec<TripTold>,
    /// Requests that wait, at most [`MAX_RECONCILED_A_STEP`].
    pub pending: Vec<RequestDraft>,
    /// Everything is told: trips that the store holds and nobody told are over.
    pub done: bool,
}

/// A trip that the store holds again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Restored {
    /// The driver.
    pub driver_id: DriverId,
    /// The request.
    pub request_id: RequestId,
    /// The fence that counts from now on.
    pub fence: Fence,
}

/// What became of the telling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ReconcileAnswer {
    /// Trips that are held.
    pub restored: Vec<Restored>,
    /// Requests that are pending, or were known.
    pub pending: Vec<Taken>,
    /// Trips that could not be restored.
    pub rejected_trips: Vec<Rejected<RequestId>>,
    /// Requests that were not taken.
    pub rejected_requests: Vec<Rejected<RequestId>>,
}

/// Why a telling is refused as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ReconcileRefusal {
    /// It tells of another life of the data.
    #[error("the present generation is {generation}")]
    GenerationChanged {
        /// The present one.
        generation: Generation,
    },
    /// More entries than one step takes.
    #[error("a call has at most 1000 trips and 1000 requests")]
    TooLarge,
}

impl Region {
    /// Restores what the dispatch tier tells. Told twice is told once.
    pub(crate) fn reconcile(
        &mut self,
        telling: Reconcile,
        now: StoreTime,
    ) -> Result<ReconcileAnswer, ReconcileRefusal> {
        if telling.generation != self.generation {
            return Err(ReconcileRefusal::GenerationChanged {
                generation: self.generation,
            });
        }
        if telling.on_trip.len().max(telling.pending.len()) > MAX_RECONCILED_A_STEP {
            return Err(ReconcileRefusal::TooLarge);
        }
        let mut answer = ReconcileAnswer::default();
        for (index, trip) in telling.on_trip.into_iter().enumerate() {
            match self.restore(&trip, now) {
                Ok(fence) => answer.restored.push(Restored {
                    driver_id: trip.driver_id,
                    request_id: trip.request_id,
                    fence,
                }),
                Err(code) => answer.rejected_trips.push(Rejected {
                    index,
                    id: trip.request_id,
                    code,
                }),
            }
        }
        let pending = self.intake_all(telling.pending, now);
        answer.pending = pending.requests;
        answer.rejected_requests = pending.rejected;
        if telling.done {
            self.reconciling = Reconciling::Start;
        }
        Ok(answer)
    }

    fn restore(&mut self, trip: &TripTold, now: StoreTime) -> Result<Fence, EntryCode> {
        self.touch_driver(&trip.driver_id, now);
        self.touch_request(&trip.request_id, now);
        let generation = self.generation;
        let on_trip = self.drivers.get_mut(&trip.driver_id).and_then(|record| {
            record.claim.as_mut().filter(|claim| {
                claim.request_id == trip.request_id
                    && matches!(claim.phase, ClaimPhase::OnTrip { .. })
            })
        });
        if let Some(claim) = on_trip {
            // the store did not lose this one: its fence is still the dispatch tier's
            claim.generation = generation;
            return Ok(claim.fence);
        }
        let record = self.requests.get(&trip.request_id);
        if let Some(trace) = record.and_then(|record| record.claims.last())
            && trace.driver_id == trip.driver_id
            && trace.completed_by_call
        {
            // a telling that comes late: the trip was held, driven and completed since
            return Ok(trace.fence);
        }
        let told_elsewhere = self.requests.get(&trip.request_id).and_then(|record| {
            let live = record.live()?;
            let holder = self.drivers.get(&live.driver_id)?.claim.as_ref()?;
            Some(holder.generation == generation)
        });
        let driver_told = self
            .drivers
            .get(&trip.driver_id)
            .and_then(|record| record.claim.as_ref())
            .is_some_and(|claim| claim.generation == generation);
        if told_elsewhere == Some(true) || driver_told {
            // two trips told of one driver or one request: the first stands
            return Err(EntryCode::IdConflict);
        }
        self.end_untold_of_request(&trip.request_id, now);
        self.end_untold(&trip.driver_id, now);
        let requested_at_ms = now.ms();
        let deadline_ms = requested_at_ms + self.rules.max_wait_ms;
        let entered = self.last_window;
        self.requests
            .entry(trip.request_id.clone())
            .or_insert_with(|| RequestRecord {
                draft: None,
                fingerprint: None,
                requested_at_ms,
                deadline_ms,
                state: RequestState::Released,
                entered,
                intake: None,
                own_window: None,
                attempts: 0,
                claims: Vec::new(),
                ended_at_ms: None,
            });
        self.drivers.entry(trip.driver_id.clone()).or_default();
        let until_ms: UnixMs = now.ms() + self.rules.max_trip_ms;
        let pair = Pair {
            request: &trip.request_id,
            driver: &trip.driver_id,
            eta: DurationMs::ZERO,
            cost: CostMs::default(),
            source: Source::Reconciled,
            window_seq: None,
        };
        self.hold(&pair, ClaimPhase::OnTrip { until_ms }, now)
            .ok_or(EntryCode::IdConflict)
    }

    fn end_untold_of_request(&mut self, request: &RequestId, now: StoreTime) {
        let holder = self
            .requests
            .get(request)
            .and_then(RequestRecord::live)
            .map(|trace| trace.driver_id.clone());
        if let Some(driver) = holder {
            self.end_untold(&driver, now);
        }
    }

    /// Ends a claim that the store still holds and the dispatch tier does not know.
    fn end_untold(&mut self, driver: &DriverId, now: StoreTime) {
        let Some(claim) = self
            .drivers
            .get(driver)
            .and_then(|record| record.claim.as_ref())
        else {
            return;
        };
        let key = ClaimKey {
            driver_id: driver.clone(),
            request_id: claim.request_id.clone(),
            fence: claim.fence,
        };
        match claim.phase {
            ClaimPhase::Offered { .. } => self.expire_lease(&key, Some(Reason::Reconciled), now),
            ClaimPhase::OnTrip { .. } => {
                self.end_trip(&key, Reason::Reconciled, now);
            }
        }
    }

    /// After `done`: ends trips that nobody told, a bounded number a step.
    pub(crate) fn sweep_untold(&mut self, now: StoreTime) {
        let from = match &self.reconciling {
            Reconciling::Idle => return,
            Reconciling::Start => Bound::Unbounded,
            Reconciling::After(driver) => Bound::Excluded(driver.clone()),
        };
        let seen: Vec<(DriverId, bool)> = self
            .drivers
            .range((from, Bound::Unbounded))
            .filter_map(|(id, record)| {
                let claim = record.claim.as_ref()?;
                let untold = claim.generation != self.generation;
                matches!(claim.phase, ClaimPhase::OnTrip { .. }).then(|| (id.clone(), untold))
            })
            .take(MAX_SWEPT_A_STEP)
            .collect();
        self.reconciling = if seen.len() < MAX_SWEPT_A_STEP {
            Reconciling::Idle
        } else {
            seen.last()
                .map_or(Reconciling::Idle, |(id, _)| Reconciling::After(id.clone()))
        };
        for (driver, untold) in seen {
            if untold {
                self.end_untold(&driver, now);
            }
        }
    }
}
