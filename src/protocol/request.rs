//! Requests: intake that may be repeated, the record of a request's life, cancelling.
//!
//! INV-6: a request that was taken in ends in exactly one of confirmed, cancelled, expired, and the
//! same id with the same body gets the first answer until `request_memory_ms` after that end.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    claim::{ClaimOutcome, ClaimTrace},
    driver::{EntryCode, Rejected},
    due::DueKey,
    mutation::Mutation,
    outbox::{Event, EventType, Reason},
    region::Region,
    rules::{MAX_REQUESTS, MAX_REQUESTS_A_STEP},
};
use crate::domain::{
    CostMs, DriverId, DurationMs, Fence, Place, RequestId, RiderId, StoreTime, UnixMs,
    VehicleClass, WindowId, WindowSeq,
};

/// A request as the dispatch tier sends it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestDraft {
    /// Its id.
    pub id: RequestId,
    /// The rider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rider_id: Option<RiderId>,
    /// Where the rider waits.
    pub pickup: Place,
    /// Where the rider goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropoff: Option<Place>,
    /// Classes of vehicle that will do; empty: every class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vehicle_classes: Vec<VehicleClass>,
    /// Since when the rider waits; missing: since the request arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at_ms: Option<UnixMs>,
    /// How long the rider waits; missing: the region's `max_wait_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<DurationMs>,
    /// Cost of leaving the request over, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched_cost: Option<CostMs>,
    /// Longest way of a driver to the pickup, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pickup_eta: Option<DurationMs>,
    /// Drivers that will not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_driver_ids: Vec<DriverId>,
}

/// A hash of a body: tells a repeat from another body under the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(u128);

/// A text is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 32 hexadecimal digits")]
pub struct FingerprintError;

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        format!("{:032x}", fingerprint.0)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(&text, 16) {
            Ok(hash) if digits => Ok(Self(hash)),
            _ => Err(FingerprintError),
        }
    }
}

impl Fingerprint {
    /// Of a body's canonical bytes (XXH3, 128 bits).
    pub fn of(body: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(body))
    }

    /// Of a value's JSON.
    pub(crate) fn of_value(value: &impl Serialize) -> Self {
        // made of strings and finite numbers: it always has a JSON form
        Self::of(&serde_json::to_vec(value).unwrap_or_default())
    }
}

impl RequestDraft {
    /// A request that tells nothing but its id and its place.
    pub fn at(id: RequestId, pickup: Place) -> Self {
        Self {
            id,
            rider_id: None,
            pickup,
            dropoff: None,
            vehicle_classes: Vec::new(),
            requested_at_ms: None,
            max_wait_ms: None,
            unmatched_cost: None,
            max_pickup_eta: None,
            exclude_driver_ids: Vec::new(),
        }
    }

    /// The fingerprint of what was sent, before defaults are filled in.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_value(self)
    }
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waiting for a driver.
    Pending,
    /// A driver is held for it.
    Assigned,
    /// Its trip is on, or was.
    Confirmed,
    /// The rider or the dispatch tier took it back.
    Cancelled,
    /// It waited too long.
    Expired,
    /// It came by a caller's own window and its driver did not take it: over for the region.
    Released,
}

impl RequestState {
    /// Whether nothing more will happen to it, but the end of a trip.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Assigned)
    }
}

/// The answer to a request that was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IntakePlace {
    /// The window that will decide it first.
    pub window_seq: WindowSeq,
    /// When that window closes at the latest.
    pub closes_at_ms: UnixMs,
}

/// A request as the region knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestRecord {
    /// What was sent; absent for a trip that was only told in a reconcile.
    pub draft: Option<Arc<RequestDraft>>,
    /// The hash of what was sent.
    pub fingerprint: Option<Fingerprint>,
    /// Since when the rider waits; it never changes.
    pub requested_at_ms: UnixMs,
    /// The last instant at which it may still be matched.
    pub deadline_ms: UnixMs,
    /// Where it stands.
    pub state: RequestState,
    /// The first window that decides it since it became pending.
    pub entered: WindowSeq,
    /// The first answer of the intake; absent when it did not come that way.
    pub intake: Option<IntakePlace>,
    /// The caller's own window it came by.
    pub own_window: Option<WindowId>,
    /// Claims made for it so far.
    pub attempts: u32,
    /// The last few of them, oldest first; a live one is the last.
    pub claims: Vec<ClaimTrace>,
    /// When nothing more was to happen to it, the trip included.
    pub ended_at_ms: Option<UnixMs>,
}

impl RequestRecord {
    /// The rider, when one was named.
    pub fn rider(&self) -> Option<&RiderId> {
        self.draft
            .as_ref()
            .and_then(|draft| draft.rider_id.as_ref())
    }

    /// The live claim.
    pub fn live(&self) -> Option<&ClaimTrace> {
        self.claims
            .last()
            .filter(|trace| trace.outcome == ClaimOutcome::Live)
    }

    /// The remembered claim of a driver under a fence.
    pub(crate) fn trace(&self, driver: &DriverId, fence: Fence) -> Option<&ClaimTrace> {
        self.claims
            .iter()
            .find(|t| t.fence == fence && t.driver_id == *driver)
    }

    pub(crate) fn live_mut(&mut self) -> Option<&mut ClaimTrace> {
        self.claims
            .last_mut()
            .filter(|trace| trace.outcome == ClaimOutcome::Live)
    }
}

/// Requests to take in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Intake {
    /// At most [`MAX_REQUESTS_A_STEP`]; more are rejected one by one.
    pub requests: Vec<RequestDraft>,
}

/// One request that was taken in, now or before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Taken {
    /// Its id.
    pub id: RequestId,
    /// Where it stood at the first answer.
    pub state: RequestState,
    /// The window that decides it, and when that closes.
    #[serde(flatten)]
    pub place: IntakePlace,
    /// This is the first answer again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// What became of a batch of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct IntakeAnswer {
    /// Taken in, in the order sent.
    pub requests: Vec<Taken>,
    /// Not taken.
    pub rejected: Vec<Rejected<RequestId>>,
}

/// Why a region takes no request at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum IntakeRefusal {
    /// The store lost data; what is true is being told first.
    #[error("the region is quarantined until {until_ms}")]
    Quarantined {
        /// When requests are taken again.
        until_ms: UnixMs,
    },
    /// Ops paused the intake.
    #[error("the region is paused")]
    Paused,
}

/// Takes a request back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Which.
    pub request_id: RequestId,
}

/// A request was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cancelled {
    /// Which.
    pub request_id: RequestId,
    /// When.
    pub at_ms: UnixMs,
    /// The driver that was held for it and is free now, and the fence of that claim.
    pub freed: Option<(DriverId, Fence)>,
}

/// Why a request cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CancelRefusal {
    /// The region does not know it.
    #[error("the request is not known")]
    UnknownRequest,
    /// During a quarantine: the store does not hold it (any more).
    #[error("the store does not hold the request")]
    NotHeld,
    /// Its trip is on: complete the claim instead.
    #[error("the request is confirmed")]
    AlreadyConfirmed,
    /// It ended otherwise.
    #[error("the request has ended")]
    RequestClosed,
}

impl Region {
    /// Takes requests in. Each stands alone, and each may be repeated.
    pub(crate) fn intake(
        &mut self,
        intake: Intake,
        now: StoreTime,
    ) -> Result<IntakeAnswer, IntakeRefusal> {
        if let Some(until_ms) = self.quarantine(now) {
            return Err(IntakeRefusal::Quarantined { until_ms });
        }
        if self.rules.paused {
            return Err(IntakeRefusal::Paused);
        }
        Ok(self.intake_all(intake.requests, now))
    }

    pub(crate) fn intake_all(&mut self, drafts: Vec<RequestDraft>, now: StoreTime) -> IntakeAnswer {
        let mut answer = IntakeAnswer::default();
        let mut seen = BTreeSet::new();
        for (index, draft) in drafts.into_iter().enumerate() {
            let id = draft.id.clone();
            let taken = if index >= MAX_REQUESTS_A_STEP {
                Err(EntryCode::TooLarge)
            } else if seen.insert(id.clone()) {
                self.intake_one(draft, now)
            } else {
                Err(EntryCode::DuplicateInBatch)
            };
            match taken {
                Ok(taken) => answer.requests.push(taken),
                Err(code) => answer.rejected.push(Rejected { index, id, code }),
            }
        }
        answer
    }

    fn intake_one(&mut self, draft: RequestDraft, now: StoreTime) -> Result<Taken, EntryCode> {
        let fingerprint = draft.fingerprint();
        self.touch_request(&draft.id, now);
        let before = self.requests.get(&draft.id);
        if let Some(record) = before
            // a caller's own window is done with a released one: the id may come again
            && record.state != RequestState::Released
            && !self.has(Mutation::IntakeRepeatCreates)
        {
            let same_body = record.fingerprint == Some(fingerprint);
            return match record.intake {
                Some(place) if same_body || self.has(Mutation::IntakeIgnoresBody) => Ok(Taken {
                    id: draft.id,
                    state: RequestState::Pending,
                    place,
                    replayed: true,
                }),
                _ => Err(EntryCode::IdConflict),
            };
        }
        let ms = now.ms();
        let requested_at_ms = draft.requested_at_ms.unwrap_or(ms);
        if requested_at_ms > ms + self.rules.max_clock_skew_ms {
            return Err(EntryCode::RequestedAtInFuture);
        }
        let deadline_ms = requested_at_ms + draft.max_wait_ms.unwrap_or(self.rules.max_wait_ms);
        if ms > deadline_ms {
            return Err(EntryCode::AlreadyExpired);
        }
        if self.pending.len() >= self.rules.max_pending as usize
            || self.requests.len() >= MAX_REQUESTS
        {
            return Err(EntryCode::RegionFull);
        }
        let (claims, attempts) = before.map_or((Vec::new(), 0), |r| (r.claims.clone(), r.attempts));
        let id = draft.id.clone();
        let place = self.arrive(now);
        self.requests.insert(
            id.clone(),
            RequestRecord {
                draft: Some(Arc::new(draft)),
                fingerprint: Some(fingerprint),
                requested_at_ms,
                deadline_ms,
                state: RequestState::Pending,
                entered: place.window_seq,
                intake: Some(place),
                own_window: None,
                attempts,
                claims,
                ended_at_ms: None,
            },
        );
        self.pending.insert((requested_at_ms, id.clone()));
        self.due
            .set(DueKey::Request(id.clone()), after(deadline_ms));
        let mut event = Event::new(EventType::Requested);
        event.request_id = Some(id.clone());
        event.window_seq = Some(place.window_seq);
        self.publish(event, now);
        Ok(Taken {
            id,
            state: RequestState::Pending,
            place,
            replayed: false,
        })
    }

    /// Takes a request back and frees its driver, both at once.
    pub(crate) fn cancel(
        &mut self,
        cancel: &CancelRequest,
        now: StoreTime,
    ) -> Result<Cancelled, CancelRefusal> {
        let id = &cancel.request_id;
        self.touch_request(id, now);
        let quarantined = self.quarantine(now).is_some();
        let Some(record) = self.requests.get(id) else {
            return Err(if quarantined {
                CancelRefusal::NotHeld
            } else {
                CancelRefusal::UnknownRequest
            });
        };
        let freed = |trace: &ClaimTrace| (trace.driver_id.clone(), trace.fence);
        match record.state {
            RequestState::Confirmed => Err(CancelRefusal::AlreadyConfirmed),
            RequestState::Expired | RequestState::Released => Err(CancelRefusal::RequestClosed),
            RequestState::Cancelled => Ok(Cancelled {
                request_id: id.clone(),
                at_ms: record.ended_at_ms.unwrap_or(now.ms()),
                freed: record
                    .claims
                    .last()
                    .filter(|trace| trace.outcome == ClaimOutcome::Cancelled)
                    .map(freed),
            }),
            RequestState::Pending | RequestState::Assigned => {
                let freed = record.live().map(freed);
                if let Some((driver, _)) = &freed
                    && !self.has(Mutation::CancelKeepsDriver)
                {
                    self.free(driver, now);
                }
                self.end_trace(id, ClaimOutcome::Cancelled, now);
                self.end_request(id, RequestState::Cancelled, now);
                let mut event = Event::new(EventType::Cancelled);
                event.request_id = Some(id.clone());
                if let Some((driver, fence)) = &freed {
                    event.driver_id = Some(driver.clone());
                    event.fence = Some(*fence);
                }
                self.publish(event, now);
                Ok(Cancelled {
                    request_id: id.clone(),
                    at_ms: now.ms(),
                    freed,
                })
            }
        }
    }

    /// Ends a request: it is no longer pending, and its memory begins to run.
    pub(crate) fn end_request(&mut self, id: &RequestId, state: RequestState, now: StoreTime) {
        let Some(record) = self.requests.get_mut(id) else {
            return;
        };
        record.state = state;
        record.ended_at_ms = Some(now.ms());
        self.pending.remove(&(record.requested_at_ms, id.clone()));
        let forgotten = now.ms() + self.rules.request_memory_ms;
        self.due.set(DueKey::Request(id.clone()), forgotten);
    }

    /// A pending request has waited too long.
    pub(crate) fn expire_request(&mut self, id: &RequestId, now: StoreTime) {
        self.end_request(id, RequestState::Expired, now);
        let mut event = Event::new(EventType::Expired);
        event.request_id = Some(id.clone());
        event.reason = Some(Reason::MaxWait);
        self.publish(event, now);
    }

    /// A request lost its driver: it is pending again with its age, or over.
    pub(crate) fn return_request(&mut self, id: &RequestId, now: StoreTime) {
        let Some(record) = self.requests.get(id) else {
            return;
        };
        if record.own_window.is_some() {
            self.end_request(id, RequestState::Released, now);
            return;
        }
        let deadline_ms = record.deadline_ms;
        if now.ms() > deadline_ms && !self.has(Mutation::DeadlineIgnoredAtRelease) {
            self.expire_request(id, now);
            return;
        }
        let requested_at_ms = if self.has(Mutation::AgeResetOnRelease) {
            now.ms()
        } else {
            record.requested_at_ms
        };
        let entered = self.collecting(now);
        let Some(record) = self.requests.get_mut(id) else {
            return;
        };
        record.requested_at_ms = requested_at_ms;
        record.state = RequestState::Pending;
        record.entered = entered;
        self.pending.insert((requested_at_ms, id.clone()));
        self.due
            .set(DueKey::Request(id.clone()), after(deadline_ms));
    }
}

/// The first instant after `deadline`: a request of exactly that age may still be matched.
fn after(deadline: UnixMs) -> UnixMs {
    deadline + DurationMs::new(1)
}
