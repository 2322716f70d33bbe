//! What a window that looks ahead knows beside its requests and drivers.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};

use crate::{
    config::RegionValues,
    domain::{DurationMs, RequestId, UnixMs},
    supply::Position,
};

/// Most phantoms of a window; of more the newest stand.
pub const MAX_PHANTOMS: usize = 2_000;

/// A request that is expected: it stands for nobody in particular, is never given a car and never
/// reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phantom {
    /// When the request is expected, if that lies after the window's instant; else when the past
    /// request was made that it is taken from.
    pub at_ms: UnixMs,
    /// Where its rider would wait.
    pub pickup: Position,
}

impl Phantom {
    /// The order of phantoms: by time, then by place.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.pickup.place(), other.pickup.place());
        self.at_ms
            .cmp(&other.at_ms)
            .then(ours.lat().total_cmp(&theirs.lat()))
            .then(ours.lng().total_cmp(&theirs.lng()))
    }
}

/// What is known of a pending request's waiting, where it is not plain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The request.
    pub request_id: RequestId,
    /// When a window first planned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_since_ms: Option<UnixMs>,
    /// The last instant at which it may be matched; absent: `max_wait_ms` after it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<UnixMs>,
}

/// What a window that looks ahead knows beside its requests and drivers; empty in one that does
/// not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Parts")]
pub struct Foresight {
    /// By time and place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phantoms: Vec<Phantom>,
    /// By request; only those of which there is something to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Waiting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    #[serde(default)]
    phantoms: Vec<Phantom>,
    #[serde(default)]
    waiting: Vec<Waiting>,
}

impl From<Parts> for Foresight {
    fn from(Parts { phantoms, waiting }: Parts) -> Self {
        Self::new(phantoms, waiting)
    }
}

impl Foresight {
    /// Puts the parts in order; the input order never matters.
    pub fn new(mut phantoms: Vec<Phantom>, mut waiting: Vec<Waiting>) -> Self {
        phantoms.sort_by(Phantom::order);
        waiting.sort_by(|a, b| a.request_id.cmp(&b.request_id));
        Self { phantoms, waiting }
    }

    /// The expected requests, by time and place.
    pub fn phantoms(&self) -> &[Phantom] {
        &self.phantoms
    }

    /// What is known of requests' waiting, by request.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// What is known of a request's waiting.
    pub fn waiting_of(&self, request: &RequestId) -> Option<&Waiting> {
        let found = self
            .waiting
            .binary_search_by(|waiting| waiting.request_id.cmp(request));
        found.ok().map(|at| &self.waiting[at])
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.phantoms.is_empty() && self.waiting.is_empty()
    }
}

/// Where the next requests of a region are expected: the seam at which a learned rate may stand in
/// place of what was asked for lately.
pub trait DemandSource {
    /// The requests expected within `horizon` of `now`, at most [`MAX_PHANTOMS`], in any order.
    fn expected(&self, now: UnixMs, horizon: DurationMs) -> Vec<Phantom>;
}

/// The phantoms that a region's window decided at `now` takes from `source`; none where
/// `demand_ahead_ms` is 0.
pub fn phantoms_of(source: &dyn DemandSource, config: &RegionValues, now: UnixMs) -> Vec<Phantom> {
    let horizon = config.demand_ahead_ms;
    if horizon > DurationMs::ZERO {
        source.expected(now, horizon)
    } else {
        Vec::new()
    }
}

/// The pickups asked for lately: those of the last `horizon` stand for the next.
///
/// At most [`MAX_PHANTOMS`] are remembered, the newest, each request once.
#[derive(Debug, Clone, Default)]
pub struct RecentPickups {
    seen: BTreeSet<RequestId>,
    by_time: BTreeMap<(UnixMs, RequestId), Position>,
}

impl RecentPickups {
    /// Remembers a request's pickup; says whether it is new.
    pub fn see(&mut self, request: &RequestId, at: UnixMs, pickup: Position) -> bool {
        let new = self.seen.insert(request.clone());
        if new {
            self.by_time.insert((at, request.clone()), pickup);
        }
        while self.by_time.len() > MAX_PHANTOMS {
            self.forget_oldest();
        }
        new
    }

    /// Number of remembered pickups.
    pub fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    /// Forgets what was asked for at or before `at`.
    pub fn forget_until(&mut self, at: UnixMs) {
        while self
            .by_time
            .first_key_value()
            .is_some_and(|((asked, _), _)| *asked <= at)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(((_, request), _)) = self.by_time.pop_first() {
            self.seen.remove(&request);
        }
    }
}

impl DemandSource for RecentPickups {
    fn expected(&self, now: UnixMs, horizon: DurationMs) -> Vec<Phantom> {
        let from = now - horizon;
        let recent = self.by_time.iter().map(|((at_ms, _), pickup)| Phantom {
            at_ms: *at_ms,
            pickup: *pickup,
        });
        recent
            .filter(|phantom| phantom.at_ms > from && phantom.at_ms <= now)
            .collect()
    }
}
