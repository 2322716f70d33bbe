//! The search for candidates: which drivers are available, which of them each request may get.

use rayon::prelude::*;

use super::{Candidate, CandidateTable, RowReason, pair_cost, unmatched_cost};
use crate::{
    config::RegionConfig,
    decision::{
        DriverSnapshot, Excluded, Held, PendingRequest, Presence, RequestSnapshot, WindowSnapshot,
    },
    domain::UnixMs,
    eta::{EtaModel, EtaPair},
    supply::{Nearby, Neighbour, Position},
};

/// Whether a driver can be chosen at `now`, or why not.
///
/// # Errors
/// The first of offline, busy, on a trip, claimed, stale.
pub fn availability(
    driver: &DriverSnapshot,
    config: &RegionConfig,
    now: UnixMs,
) -> Result<(), Excluded> {
    match (driver.presence, driver.held) {
        (Presence::Offline, _) => return Err(Excluded::Offline),
        (Presence::Busy, _) => return Err(Excluded::Busy),
        (Presence::Available, Held::OnTrip) => return Err(Excluded::OnTrip),
        (Presence::Available, Held::Offered) => return Err(Excluded::Claimed),
        (Presence::Available, Held::None) => {}
    }
    match driver.at_ms {
        Some(at) if now - at > config.max_location_age_ms => Err(Excluded::StaleLocation),
        _ => Ok(()),
    }
}

/// The available drivers of a snapshot, searchable request by request.
pub struct CandidateSearch<'a> {
    snapshot: &'a WindowSnapshot,
    excluded: Vec<(u32, Excluded)>,
    /// Snapshot index of each available driver that has a place, rising.
    available: Vec<u32>,
    positions: Vec<Position>,
    nearby: Nearby,
}

/// Rows searched on one thread before it pays to wake the others.
const ROWS_A_THREAD: usize = 32;

impl<'a> CandidateSearch<'a> {
    /// Sorts out who is available and prepares the search.
    pub fn new(snapshot: &'a WindowSnapshot) -> Self {
        let (mut excluded, mut available, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (index, driver) in snapshot.drivers().iter().enumerate() {
            let index = index as u32;
            match (
                availability(driver, snapshot.config(), snapshot.now()),
                driver.position,
            ) {
                (Err(reason), _) => excluded.push((index, reason)),
                (Ok(()), Some(position)) => {
                    available.push(index);
                    positions.push(position);
                }
                (Ok(()), None) => {}
            }
        }
        let nearby = Nearby::new(positions.iter().copied(), snapshot.requests().len());
        Self {
            snapshot,
            excluded,
            available,
            positions,
            nearby,
        }
    }

    /// The drivers that cannot be chosen, by snapshot index, with the reason.
    pub fn excluded(&self) -> &[(u32, Excluded)] {
        &self.excluded
    }

    /// Number of drivers that can be chosen.
    pub fn available(&self) -> usize {
        self.available.len()
    }

    /// The candidates of every request that fits into the snapshot, with one call to `eta`.
    ///
    /// `searched` is called between the search and the ETAs, `routed` after them, so that a caller
    /// with a clock can time the two.
    pub fn table(
        &self,
        eta: &dyn EtaModel,
        searched: impl FnOnce(),
        routed: impl FnOnce(),
    ) -> CandidateTable {
        let pending = self.snapshot.requests();
        let admitted = pending
            .len()
            .min(self.snapshot.config().max_snapshot_requests as usize);
        let keep = eta.rises_with_distance();
        let found: Vec<Result<Vec<Neighbour>, RowReason>> = pending[..admitted]
            .par_iter()
            .with_min_len(ROWS_A_THREAD)
            .map_init(Vec::new, |buffer, request| {
                self.in_range(request, keep, |_| true, buffer)
                    .map(|()| buffer.clone())
            })
            .collect();
        searched();

        let (mut pickups, mut pairs) = (Vec::new(), Vec::new());
        for (pending, found) in pending.iter().zip(&found) {
            let (Some(pickup), Ok(found)) = (pending.request.pickup, found) else {
                continue;
            };
            let request = pickups.len() as u32;
            pickups.push(pickup);
            pairs.extend(found.iter().map(|neighbour| EtaPair {
                request,
                driver: neighbour.index,
                haversine: neighbour.haversine,
            }));
        }
        let etas = eta.etas_s(&pickups, &self.positions, &pairs);
        routed();

        let mut table = CandidateTable::with_rows(pending.len());
        let mut at = 0;
        let mut row = Vec::new();
        for (request, found) in pending.iter().zip(found) {
            let unmatched = self.unmatched_cost(&request.request);
            let Ok(found) = found.as_ref() else {
                table.push(
                    Err(found.err().unwrap_or(RowReason::NoDriverInRange)),
                    unmatched,
                );
                continue;
            };
            let etas = &etas[at..at + found.len()];
            at += found.len();
            let reached = self.reached(&request.request, found, etas, &mut row);
            table.push(reached.map(|()| row.as_slice()), unmatched);
        }
        for request in &pending[admitted..] {
            table.push(
                Err(RowReason::Deferred),
                self.unmatched_cost(&request.request),
            );
        }
        table
    }

    /// The candidates of one request among the drivers that `free` lets through, by (ETA, driver):
    /// for rules that decide request by request.
    pub(crate) fn row(
        &self,
        request: &PendingRequest,
        eta: &dyn EtaModel,
        free: impl Fn(u32) -> bool,
        buffers: &mut RowBuffers,
    ) -> Result<(), RowReason> {
        let RowBuffers { found, row } = buffers;
        self.in_range(
            request,
            eta.rises_with_distance(),
            |at| free(self.available[at as usize]),
            found,
        )?;
        let pickups: Vec<Position> = request.request.pickup.into_iter().collect();
        let pairs: Vec<EtaPair> = found
            .iter()
            .map(|n| EtaPair {
                request: 0,
                driver: n.index,
                haversine: n.haversine,
            })
            .collect();
        let etas = eta.etas_s(&pickups, &self.positions, &pairs);
        self.reached(&request.request, found, &etas, row)
    }

    /// Cost of leaving a request of this snapshot unmatched.
    pub fn unmatched_cost(&self, request: &RequestSnapshot) -> crate::domain::CostMs {
        unmatched_cost(self.snapshot.config(), request, self.snapshot.age(request))
    }

    /// Drivers within the final radius that pass the filters, into `found`: the nearest
    /// `max_candidates` if `nearest_only`, else all.
    fn in_range(
        &self,
        pending: &PendingRequest,
        nearest_only: bool,
        free: impl Fn(u32) -> bool,
        found: &mut Vec<Neighbour>,
    ) -> Result<(), RowReason> {
        let request = &*pending.request;
        let config = self.snapshot.config();
        let Some(pickup) = &request.pickup else {
            return Err(RowReason::NoDriverInRange);
        };
        let driver = |at: u32| &*self.snapshot.drivers()[self.available[at as usize] as usize];
        let passes = |at: u32| {
            free(at) && class_fits(request, driver(at)) && !self.cooling(request, driver(at))
        };

        let radii = &config.search_radii_km;
        let first = (pending.left_over as usize).min(radii.len() - 1);
        for (step, &radius_km) in radii.iter().enumerate().skip(first) {
            self.nearby.within(pickup, radius_km, passes, found);
            if found.len() >= config.min_candidates as usize || step + 1 == radii.len() {
                break;
            }
        }
        if found.is_empty() {
            return Err(self.nobody(pickup, request, free, found));
        }
        if nearest_only {
            keep_nearest(found, config.max_candidates as usize);
        }
        Ok(())
    }

    /// Which filter left no driver.
    fn nobody(
        &self,
        pickup: &Position,
        request: &RequestSnapshot,
        free: impl Fn(u32) -> bool,
        found: &mut Vec<Neighbour>,
    ) -> RowReason {
        let fits = |at: u32| {
            class_fits(
                request,
                &self.snapshot.drivers()[self.available[at as usize] as usize],
            )
        };
        let cars = 0..self.available.len() as u32;
        let free_cars = || cars.clone().filter(|&at| free(at));
        if free_cars().next().is_some() && !free_cars().any(fits) {
            return RowReason::VehicleClass;
        }
        let widest = self
            .snapshot
            .config()
            .search_radii_km
            .last()
            .copied()
            .unwrap_or(0.0);
        self.nearby
            .within(pickup, widest, |at| free(at) && fits(at), found);
        if found.is_empty() {
            RowReason::NoDriverInRange
        } else {
            RowReason::Cooldown
        }
    }

    /// The found drivers with a route that is not too long, by (ETA, driver), into `row`.
    fn reached(
        &self,
        request: &RequestSnapshot,
        found: &[Neighbour],
        etas: &[Option<f64>],
        row: &mut Vec<Candidate>,
    ) -> Result<(), RowReason> {
        let (config, now) = (self.snapshot.config(), self.snapshot.now());
        let longest_s = request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s);
        row.clear();
        let mut any_route = false;
        for (neighbour, eta_s) in found.iter().zip(etas) {
            let Some(eta_s) = eta_s.filter(|s| s.is_finite() && *s >= 0.0) else {
                continue;
            };
            any_route = true;
            let driver = self.available[neighbour.index as usize];
            let cost = pair_cost(
                config,
                &self.snapshot.drivers()[driver as usize],
                eta_s,
                now,
            );
            row.push(Candidate {
                driver,
                eta_s,
                cost,
            });
        }
        row.sort_unstable_by(|a, b| a.eta_s.total_cmp(&b.eta_s).then(a.driver.cmp(&b.driver)));
        row.truncate(config.max_candidates as usize);
        row.retain(|candidate| candidate.eta_s <= longest_s);
        match (row.is_empty(), any_route) {
            (false, _) => Ok(()),
            (true, false) => Err(RowReason::Unroutable),
            (true, true) => Err(RowReason::OverMaxPickupEta),
        }
    }

    /// Whether the pair is in cool-down, or the client excluded the driver.
    fn cooling(&self, request: &RequestSnapshot, driver: &DriverSnapshot) -> bool {
        is_cooling(request, driver, self.snapshot.now())
    }
}

/// Buffers that live from row to row.
#[derive(Default)]
pub(crate) struct RowBuffers {
    found: Vec<Neighbour>,
    /// The candidates of the last row.
    pub(crate) row: Vec<Candidate>,
}

/// Whether a rider accepts a driver's class.
pub(crate) fn class_fits(request: &RequestSnapshot, driver: &DriverSnapshot) -> bool {
    request.vehicle_classes.is_empty()
        || driver
            .vehicle_class
            .as_ref()
            .is_some_and(|class| request.vehicle_classes.contains(class))
}

/// Whether the pair is in cool-down at `now`, or the client excluded the driver.
pub(crate) fn is_cooling(request: &RequestSnapshot, driver: &DriverSnapshot, now: UnixMs) -> bool {
    request.exclude_driver_ids.contains(&driver.id)
        || driver.cooldowns.iter().any(|cooling| {
            let same_rider = cooling.rider_id.is_some() && cooling.rider_id == request.rider_id;
            cooling.until_ms > now && (same_rider || cooling.request_id == request.id)
        })
}

/// Keeps the `most` nearest, ties by index (drivers stand in id order).
pub(super) fn keep_nearest(found: &mut Vec<Neighbour>, most: usize) {
    if found.len() > most {
        found.select_nth_unstable_by(most - 1, |a, b| {
            a.haversine
                .total_cmp(&b.haversine)
                .then(a.index.cmp(&b.index))
        });
        found.truncate(most);
    }
}
