//! Recording: one function for each thing that happens. Labels are the region and a bounded set of
//! words; every function is cheap enough for the path of a call.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use super::catalog::{
    ASSIGNED, BUILD, CLAIM, CLAIMS_LOST, CLOSE_TO_SEAL, DOUBLE_CLAIMS, EPOCH, ETA, FALLBACKS,
    FENCES_NOT_RISEN, FENCES_REFUSED, FULLNESS, GAIN_GREEDY, GAIN_GREEDY_EDGE, GENERATION_CHANGES,
    HTTP_CONNECTIONS, HTTP_REQUESTS, HTTP_SHED, HTTP_TIME, INTAKE, LEADING, LEVEL, MOVES, PENDING,
    PINGS, QUARANTINED, REJECTS, REQUEST_AGE, SOLVE, STORE_CALL, STORE_FAILED, STORE_IN_FLIGHT,
    STORE_LINK, SUPPLY, UNMATCHED, VERIFY, WINDOWS, WINDOWS_LATE,
};
use crate::{
    domain::{DurationMs, Epoch, RegionId},
    protocol::{PingAnswer, RegionView, WindowReport},
    store::redis::LinkCounters,
};

/// How well a region is served, as the gauge tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Batch windows with road ETAs.
    Batch = 0,
    /// Batch windows with straight-line ETAs.
    BatchStraightLine = 1,
    /// Windows by the greedy fallback.
    Greedy = 2,
    /// The store cannot be reached.
    Unavailable = 3,
}

/// Times of a window's phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Candidates and graph.
    pub build: Duration,
    /// Travel times.
    pub eta: Duration,
    /// Solving.
    pub solve: Duration,
    /// Verifying.
    pub verify: Duration,
    /// Claiming.
    pub claim: Duration,
}

/// A bounded queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fullness {
    /// Pending requests against `max_pending`.
    Pending,
    /// Kept events against their limit.
    Outbox,
    /// Unsealed windows against their limit.
    Windows,
}

impl Fullness {
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Outbox => "outbox",
            Self::Windows => "windows",
        }
    }
}

/// A window was sealed: its source, times and counts. `source` is `batch`, `fallback` or `none`.
pub fn window(region: &RegionId, source: &'static str, phases: &Phases, report: &WindowReport) {
    let region = region.to_string();
    let close_to_seal = report.sealed_at_ms - report.closed_at_ms;
    counter!(WINDOWS, "region" => region.clone(), "source" => source).increment(1);
    counter!(ASSIGNED, "region" => region.clone()).increment(report.assigned.into());
    let times = [
        (BUILD, phases.build),
        (ETA, phases.eta),
        (SOLVE, phases.solve),
        (VERIFY, phases.verify),
        (CLAIM, phases.claim),
    ];
    for (name, time) in times {
        histogram!(name, "region" => region.clone()).record(time);
    }
    histogram!(CLOSE_TO_SEAL, "region" => region).record(close_to_seal.as_seconds());
}

/// A window was sealed after close + budget + grace.
pub fn window_late(region: &RegionId) {
    counter!(WINDOWS_LATE, "region" => region.to_string()).increment(1);
}

/// A window was not decided by a batch.
pub fn fallback(region: &RegionId, cause: &'static str) {
    counter!(FALLBACKS, "region" => region.to_string(), "cause" => cause).increment(1);
}

/// Requests that a window left over for a reason.
pub fn unmatched(region: &RegionId, reason: &'static str, requests: u64) {
    counter!(UNMATCHED, "region" => region.to_string(), "reason" => reason).increment(requests);
}

/// Pairs that were lost at the claim.
pub fn claims_lost(region: &RegionId, pairs: u64) {
    counter!(CLAIMS_LOST, "region" => region.to_string()).increment(pairs);
}

/// How long a rider had waited when a driver was claimed.
pub fn request_age(region: &RegionId, age: DurationMs) {
    histogram!(REQUEST_AGE, "region" => region.to_string()).record(age.as_seconds());
}

/// What the greedy rules would have cost more in a window, in seconds.
pub fn gains(region: &RegionId, vs_greedy_s: f64, vs_greedy_edge_s: f64) {
    let region = region.to_string();
    histogram!(GAIN_GREEDY, "region" => region.clone()).record(vs_greedy_s);
    histogram!(GAIN_GREEDY_EDGE, "region" => region).record(vs_greedy_edge_s);
}

/// A batch of pings was taken in.
pub fn pings(region: &RegionId, answer: &PingAnswer, rejected: u64) {
    let region = region.to_string();
    let outcomes = [
        ("accepted", u64::from(answer.accepted)),
        ("stale", u64::from(answer.stale)),
        ("rejected", rejected),
    ];
    for (outcome, pings) in outcomes {
        counter!(PINGS, "region" => region.clone(), "outcome" => outcome).increment(pings);
    }
    counter!(MOVES, "region" => region).increment(answer.moved.into());
}

/// Requests were taken in; `outcome` is `accepted`, `replayed` or `rejected`.
pub fn intake(region: &RegionId, outcome: &'static str, requests: u64) {
    counter!(INTAKE, "region" => region.to_string(), "outcome" => outcome).increment(requests);
}

/// A call or an entry of a batch was refused.
pub fn reject(region: &RegionId, code: &'static str) {
    counter!(REJECTS, "region" => region.to_string(), "code" => code).increment(1);
}

/// A claim call was refused for its fence or lease.
pub fn fence_refused(region: &RegionId, code: &'static str) {
    counter!(FENCES_REFUSED, "region" => region.to_string(), "code" => code).increment(1);
}

/// A region's data began a new life.
pub fn generation_changed(region: &RegionId) {
    counter!(GENERATION_CHANGES, "region" => region.to_string()).increment(1);
}

/// Claims that were refused to keep INV-1, as the store counts them.
pub fn double_claims(region: &RegionId, claims: u64) {
    counter!(DOUBLE_CLAIMS, "region" => region.to_string()).absolute(claims);
}

/// What a region holds at present: pending, supply, queues, breaches.
pub fn overview(region: &RegionId, view: &RegionView) {
    let name = region.to_string();
    gauge!(PENDING, "region" => name.clone()).set(view.pending);
    let supply = [
        ("available", view.available),
        ("offered", view.offered),
        ("on_trip", view.on_trip),
    ];
    for (state, drivers) in supply {
        gauge!(SUPPLY, "region" => name.clone(), "state" => state).set(drivers);
    }
    double_claims(region, view.counters.double_claims);
    counter!(FENCES_NOT_RISEN, "region" => name.clone()).absolute(view.counters.fences_not_risen);
    let quarantined = view.quarantined_until_ms.is_some();
    gauge!(QUARANTINED, "region" => name).set(f64::from(u8::from(quarantined)));
    fullness(
        region,
        Fullness::Pending,
        f64::from(view.pending) / f64::from(view.rules.max_pending.max(1)),
    );
    let kept = crate::protocol::rules::KEPT_EVENTS as f64;
    fullness(region, Fullness::Outbox, f64::from(view.events_kept) / kept);
    let most = crate::protocol::rules::MAX_UNSEALED_WINDOWS as f64;
    fullness(region, Fullness::Windows, view.windows.len() as f64 / most);
}

/// How well a region is served.
pub fn level(region: &RegionId, level: Level) {
    gauge!(LEVEL, "region" => region.to_string()).set(f64::from(level as u8));
}

/// The leadership of a region that this node knows.
pub fn epoch(region: &RegionId, epoch: Epoch) {
    gauge!(EPOCH, "region" => region.to_string()).set(epoch.get() as f64);
}

/// Whether this node leads a region.
pub fn leading(region: &RegionId, leads: bool) {
    gauge!(LEADING, "region" => region.to_string()).set(f64::from(u8::from(leads)));
}

/// A call to Redis: its kind, its time, and how it failed if it did.
pub fn store_call(kind: &'static str, time: Duration, failed: Option<&'static str>) {
    histogram!(STORE_CALL, "call" => kind).record(time);
    if let Some(outcome) = failed {
        counter!(STORE_FAILED, "outcome" => outcome).increment(1);
    }
}

/// What happened to the connections to Redis since the start, and the calls on their way.
pub fn store_link(counters: &LinkCounters, in_flight: usize) {
    for (event, count) in [
        ("connect", counters.connects),
        ("connect_failed", counters.failed_connects),
        ("time_out", counters.time_outs),
        ("cut", counters.cut),
        ("redirect", counters.redirects),
        ("script_load", counters.script_loads),
        ("turned_away", counters.turned_away),
        ("map_refresh", counters.map_refreshes),
    ] {
        counter!(STORE_LINK, "event" => event).absolute(count);
    }
    gauge!(STORE_IN_FLIGHT).set(in_flight as f64);
}

/// How full a bounded queue is, 0 to 1.
pub fn fullness(region: &RegionId, queue: Fullness, ratio: f64) {
    gauge!(FULLNESS, "region" => region.to_string(), "queue" => queue.name()).set(ratio);
}

/// Admission turned a call away.
pub fn shed(region: &RegionId, work: &'static str) {
    counter!(HTTP_SHED, "region" => region.to_string(), "work" => work).increment(1);
}

/// An HTTP answer. `route` is the pattern of the path, `method` one of the few that are routed.
pub fn http_request(route: &str, method: &'static str, status: u16, time: Duration) {
    let labels = [
        ("route", route.to_owned()),
        ("method", method.to_owned()),
        ("status", status.to_string()),
    ];
    counter!(HTTP_REQUESTS, &labels).increment(1);
    histogram!(HTTP_TIME, "route" => route.to_owned()).record(time);
}

/// Connections that are open at present.
pub fn http_connections(open: usize) {
    gauge!(HTTP_CONNECTIONS).set(open as f64);
}
