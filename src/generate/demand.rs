//! The demand: when riders ask, where they are and where they go.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::City;
use crate::{
    domain::{Place, UnixMs},
    replay::draw::{gaussian_pair, unit},
};

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order {
    /// Hours of demand.
    pub hours: f64,
    /// Mean requests an hour.
    pub requests_per_hour: u32,
    /// Size of the fleet.
    pub drivers: u32,
    /// Seed of every draw.
    pub seed: u64,
}

/// A request and its trip.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedTrip {
    /// When the rider asks.
    pub requested_at: UnixMs,
    /// Where the rider waits.
    pub pickup: Place,
    /// Where the rider gets out.
    pub dropoff: Place,
    /// Seconds from pickup to drop-off.
    pub trip_s: u32,
}

/// A driver where it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedDriver {
    /// When it starts.
    pub from: UnixMs,
    /// Where it starts.
    pub place: Place,
}

/// A recording, trips by time.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The trips.
    pub trips: Vec<GeneratedTrip>,
    /// The fleet.
    pub drivers: Vec<GeneratedDriver>,
}

/// Midnight of Tuesday 2026-01-06, UTC.
const MIDNIGHT: UnixMs = UnixMs::new(1_767_657_600_000);

/// Requests by hour of day, relative to each other, without the rushes.
const BY_HOUR: [f64; 24] = [
    0.45, 0.3, 0.2, 0.15, 0.2, 0.4, 0.7, 1.0, 1.2, 1.1, 1.0, 1.0, 1.1, 1.1, 1.0, 1.1, 1.2, 1.3,
    1.3, 1.2, 1.1, 1.0, 0.9, 0.7,
];

/// The rushes: hour of the peak, height over the profile, and width.
const RUSHES: [(f64, f64, f64); 2] = [(8.4, 1.2, 0.6), (18.5, 1.6, 0.45)];

/// Distance beyond which fewer and fewer people ride: a destination that far out is kept with
/// probability 1/e.
const RIDE_KM: f64 = 3.0;

/// Share of riders who are at an office by hour of day; the others are at home.
const AT_OFFICE: [f64; 24] = [
    0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.15, 0.3, 0.5, 0.5, 0.6, 0.6, 0.6, 0.7, 0.8, 0.85,
    0.85, 0.75, 0.6, 0.5, 0.4, 0.35,
];

/// Road kilometres for each straight one, and the speed in the open; the rush slows it.
const DETOUR: f64 = 1.3;
const FREE_KMH: f64 = 30.0;

/// Generates a recording. A span under 12 hours lies around the evening rush at 18:30, a longer one
/// starts at midnight.
pub fn generate(order: &Order) -> Generated {
    let mut random = ChaCha8Rng::seed_from_u64(order.seed);
    let city = City::draw(&mut random);
    let start_hour = if order.hours < 12.0 {
        18.5 - order.hours / 2.0
    } else {
        0.0
    };
    let from = MIDNIGHT + crate::domain::DurationMs::from_seconds(start_hour * 3600.0);

    let wanted = (order.hours * f64::from(order.requests_per_hour)).round() as usize;
    let times = request_hours(&mut random, start_hour, order.hours, wanted);
    let trips = times
        .into_iter()
        .map(|hour| trip(&city, &mut random, hour))
        .collect();
    // cars wait where the riders of the first hour are, a third of them anywhere
    let office = by_hour(&AT_OFFICE, start_hour);
    let drivers = (0..order.drivers)
        .map(|_| GeneratedDriver {
            from,
            place: city.place(&mut random, office),
        })
        .collect();
    Generated { trips, drivers }
}

/// Hours since midnight at which riders ask: `wanted` times from the day's profile, sorted.
fn request_hours(random: &mut impl Rng, start_hour: f64, hours: f64, wanted: usize) -> Vec<f64> {
    // rejection under a rate that is never reached; a draw is kept with probability 0.05 at the least
    let most = 1.3 * (1.0 + RUSHES[1].1);
    let mut times = Vec::with_capacity(wanted);
    while times.len() < wanted {
        let hour = start_hour + hours * unit(random);
        if unit(random) * most < rate(hour) {
            times.push(hour);
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    times
}

fn trip(city: &City, random: &mut impl Rng, hour: f64) -> GeneratedTrip {
    let at_office = by_hour(&AT_OFFICE, hour);
    let pickup = city.place(random, at_office);
    // people go from one to the other, mostly, and rather near than far; nobody rides round the corner
    let mut dropoff = city.place(random, 1.0 - at_office);
    for _ in 0..50 {
        let km = pickup.distance_km(dropoff);
        if km >= 0.7 && unit(random) < libm::exp(-km / RIDE_KM) {
            break;
        }
        dropoff = city.place(random, 1.0 - at_office);
    }
    let speed_kmh = FREE_KMH / (0.7 + 0.25 * rate(hour));
    let luck = libm::exp(0.15 * gaussian_pair(random).0);
    let trip_s = pickup.distance_km(dropoff) * DETOUR / speed_kmh * 3600.0 * luck + 60.0;
    GeneratedTrip {
        requested_at: MIDNIGHT + crate::domain::DurationMs::from_seconds(hour * 3600.0),
        pickup,
        dropoff,
        trip_s: trip_s.round().clamp(60.0, 7200.0) as u32,
    }
}

/// Requests at an hour since midnight, relative to other hours.
fn rate(hour: f64) -> f64 {
    let rush: f64 = RUSHES
        .iter()
        .map(|&(peak, height, width)| {
            let away = ((hour - peak + 12.0).rem_euclid(24.0) - 12.0) / width;
            height * libm::exp(-0.5 * away * away)
        })
        .sum();
    by_hour(&BY_HOUR, hour) * (1.0 + rush)
}

/// The profile at an hour since midnight, straight lines between the middles of the hours.
fn by_hour(profile: &[f64; 24], hour: f64) -> f64 {
    let at = (hour - 0.5).rem_euclid(24.0);
    let below = at.floor() as usize % 24;
    let share = at - at.floor();
    profile[below] * (1.0 - share) + profile[(below + 1) % 24] * share
}
