//! The search for the cheapest availabilities of a request, at given prices.
//!
//! Availabilities lie in the H3 cells of their places, by the instant they are free, in blocks that
//! know their first instant and least price. Cells are visited nearest first, as far as one in them
//! could still be among the cheapest. What is skipped is skipped by a lower bound of its cost: the
//! triangle inequality for a cell (centre and radius of what lies in it), the chord for a pair.

use h3o::{CellIndex, LatLng};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    availability::Availability,
    car_time::{CarTime, Floor},
};
use crate::{
    domain::{EARTH_RADIUS_KM, Place, SpherePoint, UnixMs, haversine_of_km, km_of_haversine},
    eta::StraightLine,
    replay::{Scenario, ScenarioTrip},
    supply::Position,
};

/// Availabilities whose least price is known together.
const BLOCK: usize = 64;

/// Kilometres and shares by which lower bounds of distances give way to rounding.
const SLACK_KM: f64 = 1e-6;
const SLACK_SHARE: f64 = 1e-9;

/// An availability found for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// What serving the request from it costs, car time included, in milliseconds, rounded down.
    pub(super) cost: i64,
    /// The same with its price.
    pub(super) priced: i64,
    /// Its column.
    pub(super) column: u32,
}

/// Which are wanted: those of priced cost below `below`, the `most` cheapest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) below: i64,
    pub(super) most: usize,
}

/// Prices of car time, and of availabilities in the order of the search, with the least of each block.
pub(super) struct Priced<'t> {
    time: &'t CarTime,
    price: Vec<i64>,
    least: Vec<i64>,
}

/// Availabilities that lie in one H3 cell, by the instant they are free.
struct Cell {
    centre: SpherePoint,
    /// Distance from the centre to the farthest of them.
    radius_km: f64,
    start: usize,
    end: usize,
    first_block: usize,
}

/// All availabilities, searchable request by request.
pub(super) struct Nearest<'a> {
    scenario: &'a Scenario,
    line: StraightLine,
    /// Haversine of the widest search radius.
    reach: f64,
    /// Cell by cell, in each by (free, column).
    entries: Vec<Availability>,
    cells: Vec<Cell>,
    /// For each cell with pickups, the cells within reach and the least way there in milliseconds,
    /// nearest first.
    around: FxHashMap<CellIndex, Vec<(i64, u32)>>,
}

impl<'a> Nearest<'a> {
    /// Prepares the search. Cells with pickups × cells with availabilities distances.
    pub(super) fn new(scenario: &'a Scenario, mut entries: Vec<Availability>) -> Self {
        let config = &scenario.config;
        entries.sort_unstable_by_key(|a| (a.position.cell(), a.free, a.column));
        let mut cells = Vec::new();
        let (mut start, mut first_block) = (0, 0);
        for group in entries.chunk_by(|a, b| a.position.cell() == b.position.cell()) {
            let (centre, radius_km) = hull(group[0].position, group.iter().map(|a| a.position));
            let end = start + group.len();
            cells.push(Cell {
                centre,
                radius_km,
                start,
                end,
                first_block,
            });
            first_block += group.len().div_ceil(BLOCK);
            start = end;
        }
        let mut pickups: FxHashMap<CellIndex, Vec<Position>> = FxHashMap::default();
        for pickup in scenario.trips.iter().filter_map(|trip| trip.request.pickup) {
            pickups.entry(pickup.cell()).or_default().push(pickup);
        }
        let line = StraightLine::of(config);
        let widest_km = config.search_radii_km.last().copied().unwrap_or(0.0);
        let around = pickups.into_par_iter().map(|(cell, pickups)| {
            let (centre, radius_km) = hull(pickups[0], pickups.iter().copied());
            let mut near: Vec<(i64, u32)> = (0u32..)
                .zip(&cells)
                .filter_map(|(at, cell)| {
                    let km = least_km(centre, radius_km, cell);
                    (km <= widest_km).then(|| (floor_ms(line.seconds(km)), at))
                })
                .collect();
            near.sort_unstable();
            (cell, near)
        });
        Self {
            scenario,
            line,
            reach: haversine_of_km(widest_km),
            around: around.collect(),
            entries,
            cells,
        }
    }

    /// Prices by column (missing ones are 0) in the order of the search.
    pub(super) fn priced<'t>(&self, by_column: &[i64], time: &'t CarTime) -> Priced<'t> {
        let price: Vec<i64> = self
            .entries
            .iter()
            .map(|a| by_column.get(a.column as usize).copied().unwrap_or(0))
            .collect();
        let blocks = self
            .cells
            .iter()
            .flat_map(|cell| price[cell.start..cell.end].chunks(BLOCK));
        let least = blocks.map(|block| block.iter().copied().min().unwrap_or(0));
        Priced {
            time,
            least: least.collect(),
            price,
        }
    }

    /// Does something for each trip, on all threads, with a buffer; results in the trips' order.
    pub(super) fn for_each_trip<T: Send>(
        &self,
        work: impl Fn(usize, &mut Vec<Found>) -> T + Sync,
    ) -> Vec<T> {
        (0..self.scenario.trips.len())
            .into_par_iter()
            .map_init(Vec::new, |found, trip| work(trip, found))
            .collect()
    }

    /// The cheapest availabilities for a trip's request, by (priced cost, column), into `found`.
    pub(super) fn cheapest(
        &self,
        trip: usize,
        prices: &Priced<'_>,
        wanted: Wanted,
        found: &mut Vec<Found>,
    ) {
        found.clear();
        let request = &self.scenario.trips[trip];
        let Some(pickup) = request.request.pickup else {
            return;
        };
        let Some(around) = self.around.get(&pickup.cell()) else {
            return;
        };
        let mut best = Best {
            found,
            wanted,
            own: trip as u32,
        };
        let floor = prices.time.floor(self.scenario, request);
        for &(least_ms, at) in around {
            if floor.of(0) + least_ms >= best.below() {
                break;
            }
            self.look_into(
                &self.cells[at as usize],
                request,
                pickup,
                prices,
                &floor,
                &mut best,
            );
        }
    }

    fn look_into(
        &self,
        cell: &Cell,
        trip: &ScenarioTrip,
        pickup: Position,
        prices: &Priced<'_>,
        floor: &Floor,
        best: &mut Best<'_>,
    ) {
        let requested = trip.request.requested_at_ms;
        let max_wait = self.scenario.config.max_wait_ms.get();
        let way = floor_ms(self.line.seconds(least_km(pickup.sphere(), 0.0, cell)));
        let wait_for = |free: UnixMs| (free - requested).get().max(0);
        let blocks = self.entries[cell.start..cell.end].chunks(BLOCK);
        let priced = prices.price[cell.start..cell.end].chunks(BLOCK);
        let least = &prices.least[cell.first_block..];
        for ((block, price), least) in blocks.zip(priced).zip(least) {
            let wait = block.first().map_or(0, |first| wait_for(first.free));
            if wait > max_wait {
                return;
            }
            if floor.of(wait) + way + least >= best.below() {
                continue;
            }
            for (entry, &price) in block.iter().zip(price) {
                let wait = wait_for(entry.free);
                if wait > max_wait {
                    return;
                }
                let late = requested.max(entry.free) > entry.last;
                if late || entry.column == best.own || floor.of(wait) + way + price >= best.below()
                {
                    continue;
                }
                let room = best.below() - floor.of(wait) - price;
                if let Some(eta_ms) = self.eta_ms(trip, pickup, entry, room) {
                    let cost = prices.time.serve(self.scenario, trip, wait, eta_ms).cost;
                    if cost + price < best.below() {
                        best.take(Found {
                            cost,
                            priced: cost + price,
                            column: entry.column,
                        });
                    }
                }
            }
        }
    }

    /// The pickup ETA as the replay works it out, rounded down, if the pair is allowed and it is
    /// below `room`.
    fn eta_ms(
        &self,
        trip: &ScenarioTrip,
        pickup: Position,
        entry: &Availability,
        room: i64,
    ) -> Option<i64> {
        let haversine = pickup.sphere().haversine(entry.position.sphere());
        // the chord is shorter than the arc, and needs no arc sine
        let chord_km = 2.0 * EARTH_RADIUS_KM * haversine.sqrt() * (1.0 - SLACK_SHARE);
        if haversine > self.reach || floor_ms(self.line.seconds(chord_km)) >= room {
            return None;
        }
        let eta_s = self.line.seconds(km_of_haversine(haversine));
        let longest_s = trip.request.max_pickup_eta_s;
        let longest_s = longest_s.unwrap_or(self.scenario.config.max_pickup_eta_s);
        let eta_ms = floor_ms(eta_s);
        (eta_s <= longest_s && eta_ms < room).then_some(eta_ms)
    }
}

/// The cheapest so far.
struct Best<'f> {
    found: &'f mut Vec<Found>,
    wanted: Wanted,
    /// The trip's own drop-off, which cannot serve it.
    own: u32,
}

impl Best<'_> {
    /// What a further one has to be below.
    fn below(&self) -> i64 {
        if self.found.len() < self.wanted.most {
            self.wanted.below
        } else {
            self.found.last().map_or(i64::MIN, |last| last.priced)
        }
    }

    fn take(&mut self, new: Found) {
        let place = |old: &Found| (old.priced, old.column) < (new.priced, new.column);
        let at = self.found.partition_point(place);
        self.found.insert(at, new);
        self.found.truncate(self.wanted.most);
    }
}

/// The centre of a place's cell, and the distance from it to the farthest of some places there.
fn hull(first: Position, places: impl Iterator<Item = Position>) -> (SpherePoint, f64) {
    let middle = LatLng::from(first.cell());
    // a cell's centre is a place; any point would do, a far one would only search more
    let centre = Place::new(middle.lat(), middle.lng()).map_or(first.sphere(), Place::on_sphere);
    let far = places.map(|place| centre.distance_km(place.sphere()));
    (centre, far.fold(0.0, f64::max))
}

/// No place within `radius_km` of `from` is nearer to one in the cell.
fn least_km(from: SpherePoint, radius_km: f64, cell: &Cell) -> f64 {
    let between = from.distance_km(cell.centre);
    (between - radius_km - cell.radius_km - SLACK_KM).max(0.0)
}

/// A time rounded down to whole milliseconds.
fn floor_ms(seconds: f64) -> i64 {
    (seconds * 1000.0).floor() as i64
}
