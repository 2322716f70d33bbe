//! Claims: what a driver is held for, and the only place where one is made.
//!
//! A claim lives in two records of the same region, the driver's and the request's, which change in
//! one step (INV-1). It begins as an offer under a lease, becomes a trip at the confirm, and leaves
//! a trace in the request, by which repeated calls get their first answer.

use serde::{Deserialize, Serialize};

use super::{
    driver::Cooldown,
    due::DueKey,
    mutation::Mutation,
    outbox::{Event, EventType, Reason, Source},
    region::Region,
    request::RequestState,
    rules::REMEMBERED_CLAIMS,
};
use crate::domain::{
    CostMs, DriverId, DurationMs, Fence, Generation, RequestId, StoreTime, UnixMs, WindowSeq,
};

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimPhase {
    /// The driver is asked; live while now < the lease's end.
    Offered {
        /// End of the lease (exclusive).
        lease_until_ms: UnixMs,
        /// Its length when it was last set.
        lease_ms: DurationMs,
    },
    /// The driver drives the trip.
    OnTrip {
        /// When the trip is ended if nobody completes it (exclusive).
        until_ms: UnixMs,
    },
}

/// A driver held for a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The request.
    pub request_id: RequestId,
    /// The claim's version.
    pub fence: Fence,
    /// Travel time of the pair, in milliseconds.
    pub eta: DurationMs,
    /// Cost of the pair, in milliseconds.
    pub cost: CostMs,
    /// How it was decided.
    pub source: Source,
    /// The region's window that decided it.
    pub window_seq: Option<WindowSeq>,
    /// When it was made.
    pub made_ms: UnixMs,
    /// How far it has come.
    pub phase: ClaimPhase,
    /// The life of the data in which it was last known to be true: made, confirmed or told.
    pub generation: Generation,
}

impl Claim {
    /// When it ends by itself.
    pub const fn ends_at(&self) -> UnixMs {
        match self.phase {
            ClaimPhase::Offered { lease_until_ms, .. } => lease_until_ms,
            ClaimPhase::OnTrip { until_ms } => until_ms,
        }
    }

    /// The state of the driver that holds it.
    pub const fn state(&self) -> ClaimState {
        match self.phase {
            ClaimPhase::Offered { .. } => ClaimState::Offered,
            ClaimPhase::OnTrip { .. } => ClaimState::OnTrip,
        }
    }
}

/// How a claim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// It did not.
    Live,
    /// Given back by the dispatch tier.
    Released,
    /// Nobody confirmed in time.
    LeaseExpired,
    /// Its request was cancelled.
    Cancelled,
    /// The trip ended.
    Completed,
}

/// A claim as its request remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimTrace {
    /// The driver.
    pub driver_id: DriverId,
    /// The claim's version.
    pub fence: Fence,
    /// How it ended.
    pub outcome: ClaimOutcome,
    /// When it was confirmed.
    pub confirmed_ms: Option<UnixMs>,
    /// When it ended.
    pub ended_ms: Option<UnixMs>,
    /// The driver's state as the call that ended it was told.
    pub left: ClaimState,
    /// The dispatch tier itself said that the trip is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed_by_call: bool,
}

/// A driver's state as answers to claim calls tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// Asked.
    Offered,
    /// Driving.
    OnTrip,
    /// Free.
    Available,
    /// Free, and not at work.
    Offline,
}

/// The claim that a call is about: all three must match (INV-3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimKey {
    /// The driver.
    pub driver_id: DriverId,
    /// The request.
    pub request_id: RequestId,
    /// The claim's version.
    pub fence: Fence,
}

/// A pair to be claimed.
pub(crate) struct Pair<'a> {
    pub(crate) request: &'a RequestId,
    pub(crate) driver: &'a DriverId,
    pub(crate) eta: DurationMs,
    pub(crate) cost: CostMs,
    pub(crate) source: Source,
    pub(crate) window_seq: Option<WindowSeq>,
}

impl Region {
    /// Makes a claim: the only place where one begins. The caller has shown that both sides are
    /// free; it is looked at again here, and a claim that would break INV-1 or INV-2 is counted and
    /// not made.
    pub(crate) fn hold(
        &mut self,
        pair: &Pair<'_>,
        phase: ClaimPhase,
        now: StoreTime,
    ) -> Option<Fence> {
        let fence = if self.has(Mutation::FenceRestarts) {
            Fence::new(self.fence.get() % 8 + 1)
        } else {
            self.fence.rise(now)
        };
        let planted = self.has(Mutation::DriverClaimedTwice)
            || self.has(Mutation::RequestClaimedTwice)
            || self.has(Mutation::FenceRestarts);
        let driver = self.drivers.get_mut(pair.driver)?;
        let request = self.requests.get_mut(pair.request)?;
        if (driver.claim.is_some() || request.live().is_some()) && !planted {
            self.counters.double_claims += 1;
            return None;
        }
        if fence <= self.fence && !planted {
            self.counters.fences_not_risen += 1;
            return None;
        }
        self.fence = fence;
        let claim = Claim {
            request_id: pair.request.clone(),
            fence,
            eta: pair.eta,
            cost: pair.cost,
            source: pair.source,
            window_seq: pair.window_seq,
            made_ms: now.ms(),
            phase,
            generation: self.generation,
        };
        let on_trip = matches!(phase, ClaimPhase::OnTrip { .. });
        if request.claims.len() >= REMEMBERED_CLAIMS {
            request.claims.remove(0);
        }
        request.claims.push(ClaimTrace {
            driver_id: pair.driver.clone(),
            fence,
            outcome: ClaimOutcome::Live,
            confirmed_ms: on_trip.then_some(now.ms()),
            ended_ms: None,
            left: claim.state(),
            completed_by_call: false,
        });
        request.attempts = request.attempts.saturating_add(1);
        request.ended_at_ms = None;
        request.state = if on_trip {
            RequestState::Confirmed
        } else {
            RequestState::Assigned
        };
        self.pending
            .remove(&(request.requested_at_ms, pair.request.clone()));
        self.due.remove(&DueKey::Request(pair.request.clone()));
        self.due
            .set(DueKey::Driver(pair.driver.clone()), claim.ends_at());
        let mut event = Event::new(if on_trip {
            EventType::Confirmed
        } else {
            EventType::Assigned
        });
        event.request_id = Some(pair.request.clone());
        event.driver_id = Some(pair.driver.clone());
        event.fence = Some(fence);
        event.eta = Some(pair.eta);
        event.cost = Some(pair.cost);
        event.window_seq = pair.window_seq;
        if pair.source == Source::Reconciled {
            event.reason = Some(Reason::Reconciled);
        } else {
            event.source = Some(pair.source);
        }
        if let ClaimPhase::Offered {
            lease_until_ms,
            lease_ms,
        } = phase
        {
            event.lease_until_ms = Some(lease_until_ms);
            event.lease_ms = Some(lease_ms);
        }
        driver.claim = Some(claim);
        if !self.has(Mutation::EventMissing) {
            self.publish(event, now);
        }
        Some(fence)
    }

    /// A new offer's phase: the lease begins now.
    pub(crate) fn offer(&self, asked: Option<DurationMs>, now: StoreTime) -> ClaimPhase {
        let lease_ms = if self.has(Mutation::LeaseBelowOffer) {
            self.rules.min_window_ms
        } else {
            self.rules.lease(asked)
        };
        ClaimPhase::Offered {
            lease_until_ms: now.ms() + lease_ms,
            lease_ms,
        }
    }

    /// Ends the driver's side of a claim.
    pub(crate) fn free(&mut self, driver: &DriverId, now: StoreTime) {
        let Some(record) = self.drivers.get_mut(driver) else {
            return;
        };
        record.claim = None;
        let heard = record.presence.as_ref().map_or(now.ms(), |p| p.received_ms);
        let goes_at = heard + self.rules.driver_ttl_ms;
        self.due.set(DueKey::Driver(driver.clone()), goes_at);
    }

    /// Ends the request's side of its live claim.
    pub(crate) fn end_trace(&mut self, request: &RequestId, outcome: ClaimOutcome, now: StoreTime) {
        if let Some(record) = self.requests.get_mut(request)
            && let Some(trace) = record.live_mut()
        {
            trace.outcome = outcome;
            trace.ended_ms = Some(now.ms());
            trace.left = ClaimState::Available;
        }
    }

    /// Nobody confirmed in time; or after data loss nobody knows of the offer.
    pub(crate) fn expire_lease(&mut self, key: &ClaimKey, reason: Option<Reason>, now: StoreTime) {
        self.keep_apart(key, now);
        self.free(&key.driver_id, now);
        self.end_trace(&key.request_id, ClaimOutcome::LeaseExpired, now);
        self.publish_claim(EventType::LeaseExpired, key, reason, now);
        self.return_request(&key.request_id, now);
    }

    /// A trip ends, by a call or by its limit; the request stays confirmed.
    pub(crate) fn end_trip(
        &mut self,
        key: &ClaimKey,
        reason: Reason,
        now: StoreTime,
    ) -> ClaimState {
        self.free(&key.driver_id, now);
        let ready = self.drivers.get(&key.driver_id).is_some_and(|record| {
            record.is_ready()
                && record
                    .presence
                    .as_ref()
                    .is_some_and(|p| p.is_fresh(&self.rules, now.ms()))
        });
        let left = if ready {
            ClaimState::Available
        } else {
            ClaimState::Offline
        };
        self.end_trace(&key.request_id, ClaimOutcome::Completed, now);
        if let Some(record) = self.requests.get_mut(&key.request_id)
            && let Some(trace) = record.claims.last_mut()
        {
            trace.left = left;
            trace.completed_by_call = !matches!(reason, Reason::TripTimeout | Reason::Reconciled);
        }
        self.end_request(&key.request_id, RequestState::Confirmed, now);
        self.publish_claim(EventType::Completed, key, Some(reason), now);
        left
    }

    pub(crate) fn keep_apart(&mut self, key: &ClaimKey, now: StoreTime) {
        let until_ms = self.cooldown_until(now.ms());
        let rider_id = self
            .requests
            .get(&key.request_id)
            .and_then(|r| r.rider().cloned());
        if let Some(record) = self.drivers.get_mut(&key.driver_id) {
            record.cool_down(Cooldown {
                request_id: key.request_id.clone(),
                rider_id,
                until_ms,
            });
        }
    }

    pub(crate) fn set_phase(&mut self, driver: &DriverId, phase: ClaimPhase) {
        if let Some(claim) = self.drivers.get_mut(driver).and_then(|r| r.claim.as_mut()) {
            claim.phase = phase;
            claim.generation = self.generation;
        }
    }

    pub(crate) fn publish_claim(
        &mut self,
        kind: EventType,
        key: &ClaimKey,
        reason: Option<Reason>,
        now: StoreTime,
    ) {
        let mut event = Event::new(kind);
        event.request_id = Some(key.request_id.clone());
        event.driver_id = Some(key.driver_id.clone());
        event.fence = Some(key.fence);
        event.reason = reason;
        self.publish(event, now);
    }
}
