//! A point on the earth and the distance between two of them.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// Mean earth radius used everywhere, in kilometres.
pub const EARTH_RADIUS_KM: f64 = 6371.0088;

/// Why a pair of numbers is not a place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlaceError {
    /// Latitude outside −90..=90, or not finite.
    #[error("lat {0} is not within -90..90")]
    Lat(f64),
    /// Longitude outside −180..=180, or not finite.
    #[error("lng {0} is not within -180..180")]
    Lng(f64),
}

/// A WGS-84 place in degrees, finite and in range. In JSON an object `{"lat":…,"lng":…}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Place {
    lat: f64,
    lng: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlace {
    lat: f64,
    lng: f64,
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(PlaceObject)
    }
}

/// Reads an object only: a derived reader would take `[lat, lng]` too, and `[lng, lat]` for it.
struct PlaceObject;

impl<'de> Visitor<'de> for PlaceObject {
    type Value = Place;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place {\"lat\":…,\"lng\":…}")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Place, M::Error> {
        let RawPlace { lat, lng } = RawPlace::deserialize(MapAccessDeserializer::new(map))?;
        Place::new(lat, lng).map_err(de::Error::custom)
    }
}

// A place is never NaN, and never −0: equality is total and agrees with the hash.
impl Eq for Place {}

impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.lat.to_bits().hash(state);
        self.lng.to_bits().hash(state);
    }
}

impl Place {
    /// Checks a latitude and a longitude in degrees.
    ///
    /// # Errors
    /// [`PlaceError`] names the coordinate that is out of range or not finite.
    pub fn new(lat: f64, lng: f64) -> Result<Self, PlaceError> {
        if !(-90.0..=90.0).contains(&lat) {
            return Err(PlaceError::Lat(lat));
        }
        if !(-180.0..=180.0).contains(&lng) {
            return Err(PlaceError::Lng(lng));
        }
        // adding zero turns −0 into 0, so that equal places have equal bits
        Ok(Self {
            lat: lat + 0.0,
            lng: lng + 0.0,
        })
    }

    /// Latitude in degrees.
    pub const fn lat(self) -> f64 {
        self.lat
    }

    /// Longitude in degrees.
    pub const fn lng(self) -> f64 {
        self.lng
    }

    /// Great-circle distance in kilometres (haversine, radius [`EARTH_RADIUS_KM`]).
    pub fn distance_km(self, other: Self) -> f64 {
        self.on_sphere().distance_km(other.on_sphere())
    }

    /// The same place as a unit vector, for many distances from one place.
    pub fn on_sphere(self) -> SpherePoint {
        let (lat, lng) = (self.lat.to_radians(), self.lng.to_radians());
        let cos_lat = libm::cos(lat);
        SpherePoint {
            x: cos_lat * libm::cos(lng),
            y: cos_lat * libm::sin(lng),
            z: libm::sin(lat),
        }
    }
}

/// A place as a unit vector: half the squared chord is the haversine, so distances between many
/// places cost three multiplications each instead of four trigonometric calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpherePoint {
    x: f64,
    y: f64,
    z: f64,
}

impl SpherePoint {
    /// The haversine `sin²(angle / 2)` between two points, 0..=1: it rises with the distance, so
    /// comparisons need no arc sine.
    pub fn haversine(self, other: Self) -> f64 {
        let (dx, dy, dz) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (dx * dx + dy * dy + dz * dz) * 0.25
    }

    /// Great-circle distance in kilometres.
    pub fn distance_km(self, other: Self) -> f64 {
        km_of_haversine(self.haversine(other))
    }
}

/// Kilometres of a haversine value.
pub fn km_of_haversine(haversine: f64) -> f64 {
    2.0 * EARTH_RADIUS_KM * libm::asin(haversine.sqrt().min(1.0))
}

/// The haversine value of a distance in kilometres; every distance over half the circumference
/// gives 1.
pub fn haversine_of_km(km: f64) -> f64 {
    let half_angle = (km / (2.0 * EARTH_RADIUS_KM)).clamp(0.0, std::f64::consts::FRAC_PI_2);
    let sine = libm::sin(half_angle);
    sine * sine
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn textbook_km(a: Place, b: Place) -> f64 {
        let (p1, p2) = (a.lat.to_radians(), b.lat.to_radians());
        let dp = (p2 - p1) / 2.0;
        let dl = (b.lng - a.lng).to_radians() / 2.0;
        let h = libm::sin(dp).powi(2) + libm::cos(p1) * libm::cos(p2) * libm::sin(dl).powi(2);
        2.0 * EARTH_RADIUS_KM * libm::asin(h.sqrt().min(1.0))
    }

    proptest! {
        #[test]
        fn distance_equals_the_textbook_haversine(
            lat in -89.0..89.0f64, lng in -180.0..180.0f64, dlat in -0.9..0.9f64, dlng in -0.5..0.5f64
        ) {
            let a = Place::new(lat, lng).unwrap();
            let b = Place::new(lat + dlat, (lng + dlng).clamp(-180.0, 180.0)).unwrap();
            let (ours, theirs) = (a.distance_km(b), textbook_km(a, b));
            prop_assert!((ours - theirs).abs() <= 1e-7 + theirs * 1e-9, "{ours} {theirs}");
        }

        #[test]
        fn haversine_of_a_distance_inverts(km in 0.0..1000.0f64) {
            prop_assert!((km_of_haversine(haversine_of_km(km)) - km).abs() < 1e-6);
        }
    }

    #[test]
    fn a_place_refuses_what_is_not_on_earth() {
        assert!(Place::new(90.0, -180.0).is_ok());
        assert!(Place::new(f64::NAN, 0.0).is_err());
        assert!(Place::new(0.0, f64::INFINITY).is_err());
        assert!(Place::new(90.1, 0.0).is_err());
        assert!(serde_json::from_str::<Place>(r#"{"lat":1,"lng":181}"#).is_err());
    }

    #[test]
    fn a_place_is_an_object_and_never_an_array() {
        assert!(serde_json::from_str::<Place>(r#"{"lat":1,"lng":2}"#).is_ok());
        assert!(serde_json::from_str::<Place>("[1,2]").is_err());
    }
}
