//! Calls about a claim: confirm, release, complete, extend, each answered the same when repeated.

use serde::{Deserialize, Serialize};

use super::{
    claim::{Claim, ClaimKey, ClaimOutcome, ClaimPhase, ClaimState},
    due::DueKey,
    mutation::Mutation,
    outbox::{EventType, Reason},
    region::Region,
    request::RequestState,
};
use crate::domain::{DurationMs, StoreTime, UnixMs};

/// The driver accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Confirm {
    /// The claim.
    pub claim: ClaimKey,
}

/// Why the dispatch tier gives a driver back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The driver said no.
    Declined,
    /// The driver said nothing.
    Timeout,
    /// The offer did not arrive: the driver gets no other before its next ping.
    Undeliverable,
    /// The driver cancelled.
    DriverCancelled,
}

impl From<ReleaseReason> for Reason {
    fn from(reason: ReleaseReason) -> Reason {
        match reason {
            ReleaseReason::Declined => Reason::Declined,
            ReleaseReason::Timeout => Reason::Timeout,
            ReleaseReason::Undeliverable => Reason::Undeliverable,
            ReleaseReason::DriverCancelled => Reason::DriverCancelled,
        }
    }
}

/// The driver is given back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Release {
    /// The claim.
    pub claim: ClaimKey,
    /// Why.
    pub reason: ReleaseReason,
}

/// How a trip ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum TripOutcome {
    /// It was driven.
    #[default]
    Done,
    /// The rider cancelled.
    RiderCancelled,
    /// The driver cancelled.
    DriverCancelled,
    /// The rider was not there.
    NoShow,
}

impl From<TripOutcome> for Reason {
    fn from(outcome: TripOutcome) -> Reason {
        match outcome {
            TripOutcome::Done => Reason::Done,
            TripOutcome::RiderCancelled => Reason::RiderCancelled,
            TripOutcome::DriverCancelled => Reason::DriverCancelled,
            TripOutcome::NoShow => Reason::NoShow,
        }
    }
}

/// The trip is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Complete {
    /// The claim.
    pub claim: ClaimKey,
    /// How it ended.
    pub outcome: TripOutcome,
}

/// The driver needs longer to answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extend {
    /// The claim.
    pub claim: ClaimKey,
    /// The lease from now on, within the rails; it never gets shorter.
    pub lease_ms: DurationMs,
}

/// The answer to a call about a claim; a repeated call gets the first one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimAnswer {
    /// The claim.
    #[serde(flatten)]
    pub claim: ClaimKey,
    /// The driver's state after the call.
    pub state: ClaimState,
    /// When the call was executed, by the store's clock.
    pub now_ms: UnixMs,
    /// End of the lease, for a driver that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until_ms: Option<UnixMs>,
}

/// Why a call about a claim changes nothing.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum ClaimRefusal {
    /// The region does not know the request.
    #[error("the request is not known")]
    UnknownRequest,
    /// During a quarantine: the store does not hold the claim (any more).
    #[error("the store does not hold the claim")]
    NotHeld,
    /// The lease was over; the driver is free.
    #[error("the lease was over")]
    LeaseExpired,
    /// The trip is on: complete it.
    #[error("the claim is confirmed")]
    AlreadyConfirmed,
    /// The claim was never confirmed.
    #[error("the claim was not confirmed")]
    NotConfirmed,
    /// The request has ended.
    #[error("the request has ended")]
    RequestClosed,
    /// The fence is not that of the request's present claim.
    #[error("the fence is not the present one")]
    FenceStale,
}

/// What a caller wants of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Confirm,
    Release,
    Complete,
    Extend,
}

impl Region {
    /// The driver accepted: the trip is on.
    pub(crate) fn confirm(
        &mut self,
        call: &Confirm,
        now: StoreTime,
    ) -> Result<ClaimAnswer, ClaimRefusal> {
        let key = self.live_claim(&call.claim, Verb::Confirm, now)?;
        let key = match key {
            Found::Answered(answer) => return Ok(answer),
            Found::Live(key) => key,
        };
        let until_ms = now.ms() + self.rules.max_trip_ms;
        self.set_phase(&key.driver_id, ClaimPhase::OnTrip { until_ms });
        if !self.has(Mutation::ReaperFreesConfirmed) {
            self.due
                .set(DueKey::Driver(key.driver_id.clone()), until_ms);
        }
        self.due.remove(&DueKey::Request(key.request_id.clone()));
        if let Some(record) = self.requests.get_mut(&key.request_id) {
            record.state = RequestState::Confirmed;
            if let Some(trace) = record.live_mut() {
                trace.confirmed_ms = Some(now.ms());
            }
        }
        self.publish_claim(EventType::Confirmed, &key, None, now);
        Ok(answer(key, ClaimState::OnTrip, now.ms()))
    }

    /// The dispatch tier gives the driver back: both sides are free, with the pair kept apart or
    /// the driver unasked until its next ping.
    pub(crate) fn release(
        &mut self,
        call: &Release,
        now: StoreTime,
    ) -> Result<ClaimAnswer, ClaimRefusal> {
        let key = match self.live_claim(&call.claim, Verb::Release, now)? {
            Found::Answered(answer) => return Ok(answer),
            Found::Live(key) => key,
        };
        if call.reason == ReleaseReason::Undeliverable {
            if let Some(record) = self.drivers.get_mut(&key.driver_id) {
                record.undeliverable_ping = record.presence.as_ref().map(|p| p.at_ms);
            }
        } else {
            self.keep_apart(&key, now);
        }
        self.free(&key.driver_id, now);
        self.end_trace(&key.request_id, ClaimOutcome::Released, now);
        self.publish_claim(EventType::Released, &key, Some(call.reason.into()), now);
        self.return_request(&key.request_id, now);
        Ok(answer(key, ClaimState::Available, now.ms()))
    }

    /// The trip is over: the driver is free as its last ping says.
    pub(crate) fn complete(
        &mut self,
        call: &Complete,
        now: StoreTime,
    ) -> Result<ClaimAnswer, ClaimRefusal> {
        let key = match self.live_claim(&call.claim, Verb::Complete, now)? {
            Found::Answered(answer) => return Ok(answer),
            Found::Live(key) => key,
        };
        let left = self.end_trip(&key, call.outcome.into(), now);
        Ok(answer(key, left, now.ms()))
    }

    /// The lease ends later; the fence stays.
    pub(crate) fn extend(
        &mut self,
        call: &Extend,
        now: StoreTime,
    ) -> Result<ClaimAnswer, ClaimRefusal> {
        let key = match self.live_claim(&call.claim, Verb::Extend, now)? {
            Found::Answered(answer) => return Ok(answer),
            Found::Live(key) => key,
        };
        let before = self
            .drivers
            .get(&key.driver_id)
            .and_then(|record| record.claim.as_ref())
            .map_or(now.ms(), Claim::ends_at);
        let asked = self.rules.lease(Some(call.lease_ms));
        let lease_until_ms = before.max(now.ms() + asked);
        let lease_ms = lease_until_ms - now.ms();
        self.set_phase(
            &key.driver_id,
            ClaimPhase::Offered {
                lease_until_ms,
                lease_ms,
            },
        );
        self.due
            .set(DueKey::Driver(key.driver_id.clone()), lease_until_ms);
        let mut extended = answer(key, ClaimState::Offered, now.ms());
        extended.lease_until_ms = Some(lease_until_ms);
        Ok(extended)
    }

    /// Finds the claim that a call is about: live and open to the verb, or answered before.
    ///
    /// What is overdue ends first, so that no call meets a claim whose time is up.
    fn live_claim(
        &mut self,
        key: &ClaimKey,
        verb: Verb,
        now: StoreTime,
    ) -> Result<Found, ClaimRefusal> {
        if !self.has(Mutation::LateConfirmAccepted) {
            self.touch_request(&key.request_id, now);
            self.touch_driver(&key.driver_id, now);
        }
        let missing = |otherwise| {
            if self.quarantine(now).is_some() {
                ClaimRefusal::NotHeld
            } else {
                otherwise
            }
        };
        let Some(request) = self.requests.get(&key.request_id) else {
            return Err(missing(ClaimRefusal::UnknownRequest));
        };
        let found = if self.has(Mutation::FenceNotCompared) {
            request
                .live()
                .filter(|trace| trace.driver_id == key.driver_id)
        } else {
            request.trace(&key.driver_id, key.fence)
        };
        let Some(trace) = found else {
            return Err(missing(ClaimRefusal::FenceStale));
        };
        let first = |state, at: Option<UnixMs>| {
            Found::Answered(answer(key.clone(), state, at.unwrap_or(now.ms())))
        };
        let live = Found::Live(ClaimKey {
            fence: trace.fence,
            ..key.clone()
        });
        let refused = match (trace.outcome, verb) {
            (ClaimOutcome::Live, verb) => match (trace.confirmed_ms, verb) {
                (None, Verb::Complete) => ClaimRefusal::NotConfirmed,
                (None, _) | (Some(_), Verb::Complete) => return Ok(live),
                (Some(at), Verb::Confirm) if !self.has(Mutation::RepeatConfirmDiffers) => {
                    return Ok(first(ClaimState::OnTrip, Some(at)));
                }
                (Some(_), Verb::Release) if self.has(Mutation::ReleaseAfterConfirmLeaks) => {
                    self.end_trace(&key.request_id, ClaimOutcome::Released, now);
                    self.return_request(&key.request_id, now);
                    return Ok(first(ClaimState::Available, None));
                }
                (Some(_), _) => ClaimRefusal::AlreadyConfirmed,
            },
            (ClaimOutcome::Completed, Verb::Complete) => {
                return Ok(first(trace.left, trace.ended_ms));
            }
            (ClaimOutcome::Completed, Verb::Confirm) => {
                return Ok(first(ClaimState::OnTrip, trace.confirmed_ms));
            }
            (ClaimOutcome::Completed, _) => ClaimRefusal::AlreadyConfirmed,
            (ClaimOutcome::Released, Verb::Release) if self.has(Mutation::RepeatReleaseRuns) => {
                return Ok(live);
            }
            (ClaimOutcome::Released, Verb::Release) => {
                return Ok(first(ClaimState::Available, trace.ended_ms));
            }
            (ClaimOutcome::Cancelled, Verb::Confirm) if self.has(Mutation::ConfirmAfterCancel) => {
                return Ok(live);
            }
            (_, Verb::Complete) => ClaimRefusal::NotConfirmed,
            (ClaimOutcome::LeaseExpired, _) => ClaimRefusal::LeaseExpired,
            (ClaimOutcome::Cancelled, _) => ClaimRefusal::RequestClosed,
            (ClaimOutcome::Released, _) => match request.state {
                RequestState::Cancelled | RequestState::Expired | RequestState::Released => {
                    ClaimRefusal::RequestClosed
                }
                _ => ClaimRefusal::FenceStale,
            },
        };
        Err(refused)
    }
}

enum Found {
    Live(ClaimKey),
    Answered(ClaimAnswer),
}

fn answer(claim: ClaimKey, state: ClaimState, now_ms: UnixMs) -> ClaimAnswer {
    ClaimAnswer {
        claim,
        state,
        now_ms,
        lease_until_ms: None,
    }
}
