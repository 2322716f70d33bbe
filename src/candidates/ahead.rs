//! The candidates of a window that looks ahead: drivers who will be free soon, for its requests;
//! and drivers free now or soon, for the phantoms that stand for the next requests.
//!
//! Promise: an ETA here is the time until the driver is free plus the way from where its trip ends,
//! so it compares with that of a free driver. Nothing here is ever claimed.
//!
//! Assumes that announced ends are renewed: a driver `overdue_ms` past its end, or one whose pings
//! are older than `max_location_age_ms`, is not looked ahead to.

use rayon::prelude::*;

use super::{
    Candidate, CandidateTable, RowReason, availability, pair_cost, phantom_unmatched_cost,
    planned_cost,
    search::{class_fits, is_cooling, keep_nearest},
    unmatched_cost,
};
use crate::{
    decision::{DriverSnapshot, Held, Phantom, Presence, RequestSnapshot, WindowSnapshot},
    domain::CostMs,
    eta::{EtaModel, EtaPair},
    supply::{Nearby, Neighbour, Position},
};

/// Candidates of a phantom: it keeps one car near the next rider, so it needs to see a few.
const PHANTOM_CANDIDATES: usize = 15;

/// First radius of a phantom's search, doubled until enough cars lie within it.
const PHANTOM_RADIUS_KM: f64 = 0.5;

/// Rows searched on one thread before it pays to wake the others.
const ROWS_A_THREAD: usize = 32;

/// A driver who will be free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoonFree {
    /// Index of the driver in the snapshot.
    pub driver: u32,
    /// Seconds until its trip ends, as announced; 0 when it should have ended.
    pub free_in_s: f64,
    /// Where the trip ends.
    pub place: Position,
}

/// The candidates of a window that looks ahead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AheadCandidates {
    /// Of each request (rows = requests of the snapshot): drivers free within `plan_ahead_ms`.
    pub plans: CandidateTable,
    /// Of each phantom (rows = phantoms of the snapshot): drivers free now, or within
    /// `demand_ahead_ms`.
    pub phantoms: CandidateTable,
    /// Drivers looked ahead to.
    pub soon_free: usize,
}

/// The drivers on a trip whose end is known and lies within the longer of `plan_ahead_ms` and
/// `demand_ahead_ms`, by driver.
///
/// On a trip is who is busy or on a confirmed trip; who is offline or asked is not looked ahead to.
pub fn soon_free(snapshot: &WindowSnapshot) -> Vec<SoonFree> {
    let (config, now) = (snapshot.config(), snapshot.now());
    let horizon = config.plan_ahead_ms.max(config.demand_ahead_ms);
    let free_in = |driver: &DriverSnapshot| {
        let drives = match driver.held {
            Held::Offered => false,
            Held::OnTrip => driver.presence != Presence::Offline,
            Held::None => driver.presence == Presence::Busy,
        };
        let heard = driver
            .at_ms
            .is_none_or(|at| now - at <= config.max_location_age_ms);
        let end = driver.trip_end.filter(|_| drives && heard)?;
        let left = end.at_ms - now;
        let known = left <= horizon && now - end.at_ms <= config.overdue_ms;
        known.then(|| (left.as_seconds().max(0.0), end.place))
    };
    (0u32..)
        .zip(snapshot.drivers())
        .filter_map(|(driver, told)| {
            free_in(told).map(|(free_in_s, place)| SoonFree {
                driver,
                free_in_s,
                place: Position::new(place),
            })
        })
        .collect()
}

/// The candidates beyond those of the window alone, with one call to `eta`.
///
/// `may_plan` says which requests may be planned. A request gets the `max_candidates` drivers whose
/// trips end nearest within the last radius, without those over its longest pickup ETA, the time
/// until they are free counted. A phantom gets the 15 drivers of least (ETA, driver) within the
/// last radius, where the time until a driver is free counts as far as it exceeds the time until the
/// rider asks whom it stands for.
///
/// `searched` is called between the search and the ETAs, `routed` after them.
pub fn ahead_candidates(
    snapshot: &WindowSnapshot,
    eta: &dyn EtaModel,
    may_plan: impl Fn(usize) -> bool + Sync,
    searched: impl FnOnce(),
    routed: impl FnOnce(),
) -> AheadCandidates {
    let search = AheadSearch::new(snapshot);
    let found = search.found(may_plan);
    searched();
    let etas = eta.etas_s(&found.pickups, &search.places, &found.pairs);
    routed();
    search.tables(&found, &etas)
}

/// Free drivers and those soon free, searchable.
struct AheadSearch<'a> {
    snapshot: &'a WindowSnapshot,
    /// Snapshot index of each driver that is free now.
    free: Vec<u32>,
    soon: Vec<SoonFree>,
    /// Places of the free drivers, then those of the soon free.
    places: Vec<Position>,
    near_free: Nearby,
    near_soon: Nearby,
}

/// The pairs whose ETAs are asked for: those of the requests, then those of the phantoms.
struct Found {
    pickups: Vec<Position>,
    pairs: Vec<EtaPair>,
    /// Where the pairs of each row end, requests first.
    ends: Vec<usize>,
}

impl<'a> AheadSearch<'a> {
    fn new(snapshot: &'a WindowSnapshot) -> Self {
        let phantoms = snapshot.phantoms().len();
        let (mut free, mut places) = (Vec::new(), Vec::new());
        if phantoms > 0 {
            for (index, driver) in (0u32..).zip(snapshot.drivers()) {
                let is_free = availability(driver, snapshot.config(), snapshot.now()).is_ok();
                if let Some(place) = driver.position.filter(|_| is_free) {
                    free.push(index);
                    places.push(place);
                }
            }
        }
        let soon = soon_free(snapshot);
        let ends = soon.iter().map(|soon| soon.place);
        let near_free = Nearby::new(places.iter().copied(), phantoms);
        let near_soon = Nearby::new(ends.clone(), phantoms + snapshot.requests().len());
        places.extend(ends);
        Self {
            snapshot,
            free,
            soon,
            places,
            near_free,
            near_soon,
        }
    }

    fn widest_km(&self) -> f64 {
        let radii = &self.snapshot.config().search_radii_km;
        radii.last().copied().unwrap_or(0.0)
    }

    fn found(&self, may_plan: impl Fn(usize) -> bool + Sync) -> Found {
        let (requests, phantoms) = (self.snapshot.requests(), self.snapshot.phantoms());
        let of_requests = (0..requests.len())
            .into_par_iter()
            .with_min_len(ROWS_A_THREAD)
            .map_init(Vec::new, |buffer, row| {
                if may_plan(row) {
                    self.plans_of(&requests[row].request, buffer);
                } else {
                    buffer.clear();
                }
                buffer.clone()
            });
        let of_phantoms = phantoms.par_iter().with_min_len(ROWS_A_THREAD).map_init(
            <(Vec<_>, Vec<_>)>::default,
            |(free, soon), phantom| {
                self.cars_of(phantom, free, soon);
                free.clone()
            },
        );
        let rows: Vec<Vec<Neighbour>> = of_requests.chain(of_phantoms).collect();
        let pickups = requests
            .iter()
            .map(|pending| pending.request.pickup)
            .chain(phantoms.iter().map(|phantom| Some(phantom.pickup)));
        let mut found = Found {
            pickups: Vec::with_capacity(rows.len()),
            pairs: Vec::with_capacity(rows.iter().map(Vec::len).sum()),
            ends: Vec::with_capacity(rows.len()),
        };
        for (pickup, row) in pickups.zip(&rows) {
            // a row without a pickup has no pairs
            if let Some(pickup) = pickup {
                let request = found.pickups.len() as u32;
                found.pickups.push(pickup);
                found.pairs.extend(row.iter().map(|near| EtaPair {
                    request,
                    driver: near.index,
                    haversine: near.haversine,
                }));
            }
            found.ends.push(found.pairs.len());
        }
        found
    }

    /// The drivers whose trips end near a request's pickup within `plan_ahead_ms`, by place.
    fn plans_of(&self, request: &RequestSnapshot, found: &mut Vec<Neighbour>) {
        found.clear();
        let config = self.snapshot.config();
        let plan_s = config.plan_ahead_ms.as_seconds();
        let Some(pickup) = &request.pickup else {
            return;
        };
        if self.soon.is_empty() || plan_s <= 0.0 {
            return;
        }
        let passes = |at: u32| {
            let soon = &self.soon[at as usize];
            let driver = &self.snapshot.drivers()[soon.driver as usize];
            soon.free_in_s <= plan_s
                && class_fits(request, driver)
                && !is_cooling(request, driver, self.snapshot.now())
        };
        self.near_soon
            .within(pickup, self.widest_km(), passes, found);
        keep_nearest(found, config.max_candidates as usize);
        self.placed_after_free(found);
    }

    /// The cars near a phantom, by place, into `found`: the nearest free ones, and those soon free
    /// within the radius that was needed for them. Whoever lies beyond it is no nearer by ETA.
    fn cars_of(&self, phantom: &Phantom, found: &mut Vec<Neighbour>, soon: &mut Vec<Neighbour>) {
        let demand_s = self.snapshot.config().demand_ahead_ms.as_seconds();
        let widest_km = self.widest_km();
        let mut radius_km = PHANTOM_RADIUS_KM.min(widest_km);
        loop {
            self.near_free
                .within(&phantom.pickup, radius_km, |_| true, found);
            if found.len() >= PHANTOM_CANDIDATES || radius_km >= widest_km {
                break;
            }
            radius_km = (2.0 * radius_km).min(widest_km);
        }
        keep_nearest(found, PHANTOM_CANDIDATES);
        let in_time = |at: u32| self.soon[at as usize].free_in_s <= demand_s;
        self.near_soon
            .within(&phantom.pickup, radius_km, in_time, soon);
        self.placed_after_free(soon);
        found.append(soon);
    }

    /// Turns indices among the soon free into indices among all places.
    fn placed_after_free(&self, found: &mut [Neighbour]) {
        for near in found {
            near.index += self.free.len() as u32;
        }
    }

    fn tables(&self, found: &Found, etas: &[Option<f64>]) -> AheadCandidates {
        let (requests, phantoms) = (self.snapshot.requests(), self.snapshot.phantoms());
        let config = self.snapshot.config();
        let mut tables = AheadCandidates {
            plans: CandidateTable::with_rows(requests.len()),
            phantoms: CandidateTable::with_rows(phantoms.len()),
            soon_free: self.soon.len(),
        };
        let mut row = Vec::new();
        let mut start = 0;
        for (index, &end) in found.ends.iter().enumerate() {
            let pairs = found.pairs[start..end].iter().zip(&etas[start..end]);
            start = end;
            row.clear();
            let routed = pairs.filter_map(|(pair, eta_s)| {
                let eta_s = eta_s.filter(|s| s.is_finite() && *s >= 0.0)?;
                Some((pair.driver as usize, eta_s))
            });
            if let Some(pending) = requests.get(index) {
                let request = &*pending.request;
                let longest_s = request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s);
                row.extend(routed.map(|(place, eta_s)| self.planned(place, 0.0, eta_s)));
                row.retain(|candidate| candidate.eta_s <= longest_s);
                by_eta(&mut row, config.max_candidates as usize);
                let unmatched = unmatched_cost(config, request, self.snapshot.age(request));
                push(&mut tables.plans, &row, unmatched);
            } else {
                let phantom = &phantoms[index - requests.len()];
                let later_s = self.asked_in_s(phantom);
                row.extend(routed.map(|(place, eta_s)| match self.free.get(place) {
                    Some(&driver) => self.free_now(driver, eta_s),
                    None => self.planned(place, later_s, eta_s),
                }));
                by_eta(&mut row, PHANTOM_CANDIDATES);
                let unmatched = phantom_unmatched_cost(config, phantom);
                push(&mut tables.phantoms, &row, unmatched);
            }
        }
        tables
    }

    /// How long from now a phantom's rider asks: a learned one at its own instant; one that stands in
    /// for a past request half of `demand_ahead_ms` from now, on average.
    fn asked_in_s(&self, phantom: &Phantom) -> f64 {
        if phantom.learned {
            (phantom.at_ms - self.snapshot.now()).as_seconds().max(0.0)
        } else {
            self.snapshot.config().demand_ahead_ms.as_seconds() / 2.0
        }
    }

    fn free_now(&self, driver: u32, eta_s: f64) -> Candidate {
        let told = &self.snapshot.drivers()[driver as usize];
        Candidate {
            driver,
            eta_s,
            cost: pair_cost(self.snapshot.config(), told, eta_s, self.snapshot.now()),
        }
    }

    /// A driver soon free at `place`, for a rider who asks `later_s` from now.
    fn planned(&self, place: usize, later_s: f64, travel_s: f64) -> Candidate {
        let soon = &self.soon[place - self.free.len()];
        let told = &self.snapshot.drivers()[soon.driver as usize];
        let eta_s = (soon.free_in_s - later_s).max(0.0) + travel_s;
        Candidate {
            driver: soon.driver,
            eta_s,
            cost: planned_cost(self.snapshot.config(), told, eta_s),
        }
    }
}

/// Sorts by (ETA, driver) and keeps the first `most`.
fn by_eta(row: &mut Vec<Candidate>, most: usize) {
    row.sort_unstable_by(|a, b| a.eta_s.total_cmp(&b.eta_s).then(a.driver.cmp(&b.driver)));
    row.truncate(most);
}

fn push(table: &mut CandidateTable, row: &[Candidate], unmatched: CostMs) {
    let row = if row.is_empty() {
        Err(RowReason::NoDriverInRange)
    } else {
        Ok(row)
    };
    table.push(row, unmatched);
}
