//! What a log says of demand and supply: the requests, where their trips went, and the fleet.
//!
//! A **request** is one that was taken in (first acceptance: intake, reconcile, or claimed for an own
//! window), or that stood in a recorded window without having been taken in here. Its time is its
//! `requested_at_ms`, else when it was received. Its **drop-off** is the request's own; else, when
//! its trip was completed as `done`, the last position of the driver recorded before that. Its
//! **trip time** is completed − (confirmed + pickup ETA of the pair, as decided), when all three are
//! recorded and the outcome is `done`: the time at the pickup counts as trip.
//!
//! A **driver** begins at the first position at which it was not offline. It ends when it went
//! offline for good, or fell silent for good: no ping for `driver_ttl_ms` up to the log's end.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use super::{
    entry::{CommandEntry, Entry, Lost, RecordedWindow, SupplyEntry},
    merge::Merged,
    reader::{LogError, ReadAccount},
};
use crate::{
    config::RegionConfig,
    decision::Presence,
    domain::{DriverId, Place, RegionId, RequestId, UnixMs},
    protocol::{
        Answer, BatchAnswer, ClaimAnswer, ClaimKey, ClaimOwnBatch, Command, DriverStatus,
        PairOutcome, RequestDraft, Taken, TripOutcome,
    },
};

/// A request and the trip it led to.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// Its id.
    pub id: RequestId,
    /// When the rider asked.
    pub requested_at: UnixMs,
    /// Where the rider waited.
    pub pickup: Place,
    /// Where the trip went, if that is known.
    pub dropoff: Option<Place>,
    /// Seconds from pickup to drop-off, if they are known; not above 0 when clocks or ETAs erred.
    pub trip_s: Option<f64>,
}

/// A driver of the fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDriver {
    /// Its id.
    pub id: DriverId,
    /// When it was first seen at work.
    pub from: UnixMs,
    /// Where.
    pub place: Place,
    /// When it went for good, if it did.
    pub to: Option<UnixMs>,
}

/// Demand and supply of one region.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRegion {
    /// The region.
    pub region: RegionId,
    /// Its requests by (`requested_at`, id).
    pub requests: Vec<RecordedRequest>,
    /// Of those, requests that were not taken in here, but stood in a window.
    pub from_windows: u64,
    /// Its drivers, by id.
    pub drivers: Vec<RecordedDriver>,
    /// The configuration of its last recorded window.
    pub config: Option<RegionConfig>,
    /// Whether earlier windows had another configuration.
    pub was_tuned: bool,
}

/// Demand and supply of one or more logs.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDemand {
    /// By region.
    pub regions: Vec<RecordedRegion>,
    /// What was read.
    pub read: ReadAccount,
    /// What is missing.
    pub lost: Lost,
}

/// Reads demand and supply out of logs. Entries of several runs are taken in the order of their
/// time, so that what nodes took in side by side is put together.
/// `progress` hears the bytes read and those of all logs.
///
/// # Errors
/// A log cannot be read: see [`LogError`].
pub fn read_recorded_demand(
    paths: &[PathBuf],
    progress: &dyn Fn(u64, u64),
) -> Result<RecordedDemand, LogError> {
    let mut log = Merged::open(paths)?;
    let mut regions: BTreeMap<RegionId, Region> = BTreeMap::new();
    let mut lost = Lost::default();
    while let Some(entry) = log.next()? {
        match entry {
            Entry::Header(_) => progress(log.account().bytes, log.total_bytes()),
            Entry::End(_) => {}
            Entry::Gap(gap) => lost.add(gap.lost),
            Entry::Command(entry) => {
                let region = regions.entry(entry.region.clone()).or_default();
                region.command(*entry);
            }
            Entry::Supply(entry) => {
                let region = regions.entry(entry.region.clone()).or_default();
                region.supply(entry);
            }
            Entry::Window(window) => {
                let region = regions.entry(window.region.clone()).or_default();
                region.window(&window);
            }
        }
    }
    let regions = regions
        .into_iter()
        .map(|(id, region)| region.finish(id))
        .collect();
    Ok(RecordedDemand {
        regions,
        read: log.account(),
        lost,
    })
}

/// A region in the making.
#[derive(Default)]
struct Region {
    requests: HashMap<RequestId, Request>,
    drivers: HashMap<DriverId, Driver>,
    config: Option<RegionConfig>,
    was_tuned: bool,
    end: UnixMs,
}

struct Request {
    requested_at: UnixMs,
    pickup: Place,
    dropoff: Option<Place>,
    taken_in: bool,
    /// The pair that was decided last, with its ETA.
    pair: Option<(DriverId, f64)>,
    /// Who drives, and when the rider should be met.
    met: Option<(DriverId, Option<UnixMs>)>,
    trip_s: Option<f64>,
    completed: bool,
}

struct Driver {
    begin: Option<(UnixMs, Place)>,
    place: Place,
    seen: UnixMs,
    offline_since: Option<UnixMs>,
}

impl Region {
    fn command(&mut self, entry: CommandEntry) {
        let at = entry.at_ms;
        self.end = self.end.max(at);
        match (entry.command, entry.answer) {
            (Command::Intake(intake), Answer::Intake(Ok(answer))) => {
                self.take_in(intake.requests, &answer.requests, at);
            }
            (Command::Reconcile(telling), Answer::Reconcile(Ok(answer))) => {
                self.take_in(telling.pending, &answer.pending, at);
            }
            (Command::ClaimOwn(batch), Answer::ClaimOwn(Ok(answer))) => {
                self.claim_own(&batch, &answer, at);
            }
            (Command::Confirm(_), Answer::Confirm(Ok(answer))) => self.confirm(answer),
            (Command::Complete(complete), Answer::Complete(Ok(answer))) => {
                self.complete(&answer, complete.outcome);
            }
            (Command::RemoveDriver(remove), Answer::RemoveDriver(Ok(()))) => {
                if let Some(driver) = self.drivers.get_mut(&remove.driver_id) {
                    driver.offline_since.get_or_insert(at);
                }
            }
            _ => {}
        }
    }

    fn take_in(&mut self, drafts: Vec<RequestDraft>, taken: &[Taken], at: UnixMs) {
        let mut drafts: HashMap<RequestId, RequestDraft> = drafts
            .into_iter()
            .rev()
            .map(|draft| (draft.id.clone(), draft))
            .collect();
        for taken in taken {
            if let Some(draft) = drafts.remove(&taken.id) {
                self.take(&draft, at);
            }
        }
    }

    /// Takes a request in, unless it was before; from a window it was known in part.
    fn take(&mut self, draft: &RequestDraft, at: UnixMs) -> &mut Request {
        let request = self
            .requests
            .entry(draft.id.clone())
            .or_insert_with(|| Request::new(draft.requested_at_ms.unwrap_or(at), draft.pickup));
        if !request.taken_in {
            request.taken_in = true;
            request.dropoff = request.dropoff.or(draft.dropoff);
        }
        request
    }

    fn claim_own(&mut self, batch: &ClaimOwnBatch, answer: &BatchAnswer, at: UnixMs) {
        for (pair, outcome) in batch.pairs.iter().zip(&answer.outcomes) {
            if matches!(outcome, PairOutcome::Claimed { .. }) {
                let request = self.take(&pair.request, at);
                request.pair = Some((pair.driver_id.clone(), pair.eta.as_seconds()));
            }
        }
    }

    fn confirm(&mut self, answer: ClaimAnswer) {
        let ClaimKey {
            driver_id,
            request_id,
            ..
        } = answer.claim;
        let Some(request) = self.requests.get_mut(&request_id) else {
            return;
        };
        if request
            .met
            .as_ref()
            .is_some_and(|(known, _)| *known == driver_id)
        {
            // a repeated call
            return;
        }
        let eta_s = request
            .pair
            .as_ref()
            .filter(|(paired, _)| *paired == driver_id);
        let met =
            eta_s.map(|&(_, eta_s)| answer.now_ms + crate::domain::DurationMs::from_seconds(eta_s));
        request.met = Some((driver_id, met));
    }

    fn complete(&mut self, answer: &ClaimAnswer, outcome: TripOutcome) {
        let driver = self.drivers.get(&answer.claim.driver_id);
        let Some(request) = self.requests.get_mut(&answer.claim.request_id) else {
            return;
        };
        if std::mem::replace(&mut request.completed, true) || outcome != TripOutcome::Done {
            return;
        }
        if request.dropoff.is_none() {
            request.dropoff = driver.map(|driver| driver.place);
        }
        if let Some((by, Some(met))) = &request.met
            && *by == answer.claim.driver_id
        {
            request.trip_s = Some((answer.now_ms - *met).as_seconds());
        }
    }

    fn supply(&mut self, entry: SupplyEntry) {
        self.end = self.end.max(entry.to_ms);
        for ping in entry.pings {
            // a fast clock gains nothing
            let at = ping.at_ms.min(entry.to_ms);
            self.seen(
                ping.id,
                ping.place,
                at,
                ping.status == DriverStatus::Offline,
            );
        }
    }

    fn seen(&mut self, id: DriverId, place: Place, at: UnixMs, offline: bool) {
        let driver = self.drivers.entry(id).or_insert(Driver {
            begin: None,
            place,
            seen: at,
            offline_since: None,
        });
        if at < driver.seen {
            return;
        }
        driver.seen = at;
        driver.place = place;
        if offline {
            driver.offline_since.get_or_insert(at);
        } else {
            driver.offline_since = None;
            driver.begin.get_or_insert((at, place));
        }
    }

    fn window(&mut self, window: &RecordedWindow) {
        let snapshot = &window.snapshot;
        let now = snapshot.now();
        self.end = self.end.max(now);
        for driver in snapshot.drivers() {
            if let Some(position) = driver.position {
                let at = driver.at_ms.unwrap_or(now).min(now);
                let offline = driver.presence == Presence::Offline;
                self.seen(driver.id.clone(), position.place(), at, offline);
            }
        }
        for pending in snapshot.requests() {
            let request = &pending.request;
            if let Some(pickup) = request.pickup {
                let known = self.requests.entry(request.id.clone());
                let known =
                    known.or_insert_with(|| Request::new(request.requested_at_ms, pickup.place()));
                // by the store's clock, where the intake knew its own only
                known.requested_at = request.requested_at_ms;
            }
        }
        let last = window.repaired.as_ref().unwrap_or(&window.decision);
        for pair in &last.assignments {
            if let Some(request) = self.requests.get_mut(&pair.request_id) {
                request.pair = Some((pair.driver_id.clone(), pair.eta_s));
            }
        }
        let config = Some(snapshot.config());
        if self.config.as_ref() != config {
            self.was_tuned |= self.config.is_some();
            self.config = config.cloned();
        }
    }

    fn finish(self, region: RegionId) -> RecordedRegion {
        let ttl = self.config.as_ref().map_or_else(
            || RegionConfig::default().driver_ttl_ms,
            |c| c.driver_ttl_ms,
        );
        let end = self.end;
        let from_windows = self.requests.values().filter(|r| !r.taken_in).count() as u64;
        let mut requests: Vec<RecordedRequest> = self
            .requests
            .into_iter()
            .map(|(id, request)| RecordedRequest {
                id,
                requested_at: request.requested_at,
                pickup: request.pickup,
                dropoff: request.dropoff,
                trip_s: request.trip_s,
            })
            .collect();
        requests.sort_by(|a, b| (a.requested_at, &a.id).cmp(&(b.requested_at, &b.id)));
        let mut drivers: Vec<RecordedDriver> = self
            .drivers
            .into_iter()
            .filter_map(|(id, driver)| {
                let (from, place) = driver.begin?;
                let silent = (end - driver.seen >= ttl).then_some(driver.seen);
                Some(RecordedDriver {
                    id,
                    from,
                    place,
                    to: driver.offline_since.or(silent),
                })
            })
            .collect();
        drivers.sort_by(|a, b| a.id.cmp(&b.id));
        RecordedRegion {
            region,
            requests,
            from_windows,
            drivers,
            config: self.config,
            was_tuned: self.was_tuned,
        }
    }
}

impl Request {
    fn new(requested_at: UnixMs, pickup: Place) -> Self {
        Self {
            requested_at,
            pickup,
            dropoff: None,
            taken_in: false,
            pair: None,
            met: None,
            trip_s: None,
            completed: false,
        }
    }
}
