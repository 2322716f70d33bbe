//! A fleet drawn from the demand, where no recorded one is at hand.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{
    draw::gaussian_pair,
    input::{Demand, FleetDriver},
};
use crate::domain::{DriverId, EARTH_RADIUS_KM, Place, UnixMs};

/// Standard deviation of a sampled car's distance from its pickup, on each axis, in kilometres.
const SPREAD_KM: f64 = 0.3;

/// Draws `size` drivers: each at the pickup of a used request, with replacement, displaced by an
/// isotropic Gaussian of 300 m, there from `from` on. The same seed gives the same fleet, whatever
/// the policy or window. Without demand there is nowhere to put a car and the fleet is empty.
pub fn sample_fleet(demand: &Demand, size: u32, seed: u64, from: UnixMs) -> Vec<FleetDriver> {
    let trips = &demand.trips;
    if trips.is_empty() {
        return Vec::new();
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // five digits at least, and enough for ids to sort as numbers do
    let digits = size.saturating_sub(1).to_string().len().max(5);
    let fleet = (0..size).filter_map(|n| {
        // a 64-bit number scaled to the list: the bias, below 2^-40, is of no account
        let chosen = (u128::from(random.next_u64()) * trips.len() as u128) >> 64;
        let place = displaced(trips[chosen as usize].pickup, &mut random);
        let driver_id = DriverId::new(&format!("d{n:0digits$}")).ok()?;
        Some(FleetDriver {
            driver_id,
            from,
            place,
            to: None,
        })
    });
    fleet.collect()
}

/// A place moved by a Gaussian step; one that would leave the earth stays where it is.
fn displaced(place: Place, random: &mut impl Rng) -> Place {
    let (north_km, east_km) = gaussian_pair(random);
    let degrees_per_km = (1.0 / EARTH_RADIUS_KM).to_degrees();
    let shrink = libm::cos(place.lat().to_radians()).max(0.01);
    let lat = place.lat() + north_km * SPREAD_KM * degrees_per_km;
    let lng = place.lng() + east_km * SPREAD_KM * degrees_per_km / shrink;
    Place::new(lat, lng).unwrap_or(place)
}
