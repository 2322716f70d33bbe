//! Cars that a request could be served by, as hindsight sees them.

use super::{
    car_time::CarTime,
    nearest::{Nearest, Wanted},
};
use crate::{
    config::RegionValues,
    domain::{CostMs, DurationMs, UnixMs},
    replay::Scenario,
    supply::Position,
};

/// A car at a place from an instant on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Availability {
    /// Number of its column: that of its trip for a drop-off, those of the cars after them.
    pub(super) column: u32,
    /// Where it stands.
    pub(super) position: Position,
    /// No schedule has it free there earlier.
    pub(super) free: UnixMs,
    /// The last instant at which it may be sent off.
    pub(super) last: UnixMs,
}

/// Times each drop-off's earliest instant is worked out anew from the times of the others.
const PASSES: usize = 2;

/// What a request that gets no driver costs.
pub(super) fn lost_cost(config: &RegionValues) -> CostMs {
    // rounded down, as every cost of a bound
    let longest_ms = (config.max_pickup_eta_s * 1000.0).floor() as i64;
    CostMs::new(config.max_wait_ms.get() + longest_ms)
}

/// The availabilities of a scenario, searchable by cost, and the least wait of each trip's rider.
/// Drop-offs of trips that no schedule serves are left out.
///
/// A trip's car is free no earlier than its request + the least wait of any availability + the trip.
/// The first pass takes that wait for 0, each further one for the least found by the pass before:
/// by induction no schedule is earlier.
pub(super) fn availabilities(scenario: &Scenario) -> (Nearest<'_>, Vec<Option<i64>>) {
    let mut waits: Vec<Option<i64>> = vec![Some(0); scenario.trips.len()];
    let mut nearest = Nearest::new(scenario, with_waits(scenario, &waits));
    let time = CarTime::free(scenario);
    for _ in 0..PASSES {
        let free_of_price = nearest.priced(&[], &time);
        waits = nearest.for_each_trip(|trip, found| {
            let wanted = Wanted {
                below: i64::MAX,
                most: 1,
            };
            nearest.cheapest(trip, &free_of_price, wanted, found);
            found.first().map(|best| best.cost)
        });
        nearest = Nearest::new(scenario, with_waits(scenario, &waits));
    }
    (nearest, waits)
}

/// Drop-offs when each trip's rider has waited so long, or is not served; then the cars.
fn with_waits(scenario: &Scenario, waits: &[Option<i64>]) -> Vec<Availability> {
    let never = UnixMs::new(i64::MAX);
    let drop_offs =
        (0u32..)
            .zip(scenario.trips.iter().zip(waits))
            .filter_map(|(column, (trip, wait))| {
                let wait = DurationMs::new((*wait)?);
                Some(Availability {
                    column,
                    position: trip.dropoff,
                    free: trip.request.requested_at_ms + wait + trip.trip,
                    last: never,
                })
            });
    let cars = (scenario.trips.len() as u32..).zip(&scenario.drivers);
    let cars = cars.filter_map(|(column, driver)| {
        Some(Availability {
            column,
            position: driver.snapshot.position?,
            free: driver.from,
            last: driver.to.unwrap_or(never),
        })
    });
    drop_offs.chain(cars).collect()
}
