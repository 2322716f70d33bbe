//! The city: hot spots with their character, around a centre, in a plane of kilometres.

use rand_chacha::rand_core::Rng;

use crate::{
    domain::{EARTH_RADIUS_KM, Place},
    replay::draw::{gaussian_pair, unit},
};

/// Where the city lies: a round place; nothing real is meant.
const CENTRE: (f64, f64) = (23.75, 90.4);

/// Radius of the built-up area.
const RADIUS_KM: f64 = 6.5;

/// Share of riders who come from anywhere in the city instead of a hot spot.
const ANYWHERE: f64 = 0.2;

/// A place where many trips begin or end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotSpot {
    /// Kilometres east of the centre.
    pub east_km: f64,
    /// Kilometres north of the centre.
    pub north_km: f64,
    /// Standard deviation of places around it, on each axis.
    pub sigma_km: f64,
    /// Share of people who live here.
    pub homes: f64,
    /// Share of people who work here.
    pub offices: f64,
}

/// A city of hot spots.
#[derive(Debug, Clone, PartialEq)]
pub struct City {
    spots: Vec<HotSpot>,
}

impl City {
    /// Draws a city: offices towards the middle, homes around them, an airport near the rim.
    pub fn draw(random: &mut impl Rng) -> Self {
        let mut spots = Vec::with_capacity(12);
        for _ in 0..4 {
            spots.push(Self::spot(random, 0.35, (0.3, 0.6), (0.1, 1.0)));
        }
        for _ in 0..7 {
            spots.push(Self::spot(random, 0.8, (0.4, 1.0), (1.0, 0.15)));
        }
        let mut airport = Self::spot(random, 0.9, (0.15, 0.2), (0.25, 0.35));
        let out = RADIUS_KM * 0.85 / libm::hypot(airport.east_km, airport.north_km).max(0.1);
        airport.east_km *= out;
        airport.north_km *= out;
        spots.push(airport);
        Self { spots }
    }

    fn spot(
        random: &mut impl Rng,
        reach: f64,
        sigma: (f64, f64),
        (homes, offices): (f64, f64),
    ) -> HotSpot {
        let (east_km, north_km) = in_disc(random, RADIUS_KM * reach);
        let weight = 0.5 + unit(random);
        HotSpot {
            east_km,
            north_km,
            sigma_km: sigma.0 + (sigma.1 - sigma.0) * unit(random),
            homes: homes * weight,
            offices: offices * weight,
        }
    }

    /// A place where somebody is who is at the office with probability `at_office`, else at home.
    pub(super) fn place(&self, random: &mut impl Rng, at_office: f64) -> Place {
        let (east_km, north_km) = if unit(random) < ANYWHERE {
            in_disc(random, RADIUS_KM)
        } else {
            let office = unit(random) < at_office;
            let spot = self.pick(unit(random), office);
            let (east, north) = gaussian_pair(random);
            (
                spot.east_km + east * spot.sigma_km,
                spot.north_km + north * spot.sigma_km,
            )
        };
        let per_km = (1.0 / EARTH_RADIUS_KM).to_degrees();
        let lat = rounded(CENTRE.0 + north_km * per_km);
        let lng = rounded(CENTRE.1 + east_km * per_km / libm::cos(CENTRE.0.to_radians()));
        // a step of some kilometres from the centre stays on earth
        Place::new(lat, lng).unwrap_or_else(|_| Self::centre())
    }

    #[expect(
        clippy::expect_used,
        reason = "the centre is a constant place on earth"
    )]
    fn centre() -> Place {
        Place::new(CENTRE.0, CENTRE.1).expect("the centre is on earth")
    }

    fn pick(&self, share: f64, office: bool) -> &HotSpot {
        let weight = |spot: &HotSpot| if office { spot.offices } else { spot.homes };
        let mut left = share * self.spots.iter().map(weight).sum::<f64>();
        for spot in &self.spots[1..] {
            left -= weight(spot);
            if left < 0.0 {
                return spot;
            }
        }
        &self.spots[0]
    }
}

/// A uniform point of a disc.
fn in_disc(random: &mut impl Rng, radius_km: f64) -> (f64, f64) {
    let radius = radius_km * unit(random).sqrt();
    let angle = std::f64::consts::TAU * unit(random);
    (radius * libm::cos(angle), radius * libm::sin(angle))
}

/// Six decimals, a tenth of a metre: what recorded demand has.
fn rounded(degrees: f64) -> f64 {
    (degrees * 1e6).round() / 1e6
}
