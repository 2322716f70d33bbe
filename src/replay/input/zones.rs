//! Zones in place of coordinates: a zone's id becomes a point spread over its middle.

use std::{collections::HashMap, path::Path};

use super::{error::InputError, strict::StrictRows};
use crate::domain::{Draw, EARTH_RADIUS_KM, Place, RequestId};

/// Kilometres of one degree of latitude.
const KM_PER_DEGREE: f64 = EARTH_RADIUS_KM * std::f64::consts::PI / 180.0;

/// The zones of a city by their id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zones {
    by_id: HashMap<u32, Zone>,
    jitter: bool,
    seed: u64,
}

/// A zone's middle, and the radius of the disc that its points are spread over.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Zone {
    centroid: Place,
    radius_km: f64,
}

impl Zones {
    /// Reads a CSV with the columns `LocationID,centroid_lat,centroid_lon` and, for the spread,
    /// `min_lat,min_lon,max_lat,max_lon`; other columns are passed over.
    ///
    /// # Errors
    /// The file, row and column that are wrong.
    pub(crate) fn read(file: &Path, jitter: bool, seed: u64) -> Result<Self, InputError> {
        let progress = super::open::Progress::new(0, &|_, _| {});
        let mut rows = StrictRows::open(file, &progress)?;
        let id = rows.column(&["locationid", "zoneid", "zone_id", "id"])?;
        let lat = rows.column(&["centroid_lat", "centroidlatitude", "lat", "latitude"])?;
        let lng = rows.column(&[
            "centroid_lon",
            "centroid_lng",
            "centroidlongitude",
            "lon",
            "lng",
        ])?;
        let sides = if jitter {
            Some([
                rows.column(&["min_lat"])?,
                rows.column(&["min_lon", "min_lng"])?,
                rows.column(&["max_lat"])?,
                rows.column(&["max_lon", "max_lng"])?,
            ])
        } else {
            None
        };
        let mut by_id = HashMap::new();
        while rows.next()? {
            let zone_id = rows.whole(id)?;
            let zone_id = u32::try_from(zone_id)
                .map_err(|_| rows.refuse(id, "not a zone id: a whole number from 0"))?;
            let centroid = rows.place(lat, lng)?;
            let radius_km = match sides {
                Some([min_lat, min_lng, max_lat, max_lng]) => {
                    let low = rows.place(min_lat, min_lng)?;
                    let high = rows.place(max_lat, max_lng)?;
                    if low.lat() > high.lat() || low.lng() > high.lng() {
                        return Err(rows.refuse(max_lat, "the box ends before it begins"));
                    }
                    disc_radius_km(centroid, low, high)
                }
                None => 0.0,
            };
            let zone = Zone {
                centroid,
                radius_km,
            };
            if by_id.insert(zone_id, zone).is_some() {
                return Err(rows.refuse(id, &format!("zone {zone_id} came before")));
            }
        }
        if by_id.is_empty() {
            return Err(InputError::NoRows { file: file.into() });
        }
        Ok(Self {
            by_id,
            jitter,
            seed,
        })
    }

    /// The middle of a zone, if it is known.
    pub(crate) fn centroid(&self, zone: u32) -> Option<Place> {
        self.by_id.get(&zone).map(|z| z.centroid)
    }

    /// The point of one end (`"pickup"` or `"dropoff"`) of one request in a zone: the same for
    /// the same seed, request and end.
    pub(crate) fn point(&self, zone: u32, id: &RequestId, end: &str) -> Option<Place> {
        let zone = self.by_id.get(&zone)?;
        if !self.jitter {
            return Some(zone.centroid);
        }
        let draw = Draw::new(self.seed, "zone").text(id.as_str()).text(end);
        // The square root makes the spread even over the area of the disc.
        let radius_km = zone.radius_km * draw.number(0).unit_f64().sqrt();
        let angle = draw.number(1).unit_f64() * std::f64::consts::TAU;
        let km_per_degree_lng = KM_PER_DEGREE * libm::cos(zone.centroid.lat().to_radians());
        let lat = zone.centroid.lat() + radius_km * libm::sin(angle) / KM_PER_DEGREE;
        let lng = zone.centroid.lng() + radius_km * libm::cos(angle) / km_per_degree_lng;
        Some(Place::new(lat, lng).unwrap_or(zone.centroid))
    }
}

/// Half the smaller side of a box, in kilometres at the latitude of `centroid`.
fn disc_radius_km(centroid: Place, low: Place, high: Place) -> f64 {
    let height = (high.lat() - low.lat()) * KM_PER_DEGREE;
    let width = (high.lng() - low.lng()) * KM_PER_DEGREE * libm::cos(centroid.lat().to_radians());
    height.min(width) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(text: &str, jitter: bool) -> Result<Zones, InputError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("zones.csv");
        std::fs::write(&path, text).unwrap();
        Zones::read(&path, jitter, 5)
    }

    const ONE: &str = "LocationID,zone,centroid_lat,centroid_lon,min_lat,min_lon,max_lat,max_lon\n\
                       7,\"A, b\",40.7,-74.0,40.69,-74.1,40.71,-73.9\n";

    #[test]
    fn points_fill_the_disc_of_half_the_smaller_side_and_stay_for_ever() {
        let zones = zones(ONE, true).unwrap();
        let centroid = zones.centroid(7).unwrap();
        let radius = 0.01 * KM_PER_DEGREE;
        let (mut inner, mut points) = (0, Vec::new());
        for i in 0..2000 {
            let id = RequestId::new(&format!("r{i}")).unwrap();
            let point = zones.point(7, &id, "pickup").unwrap();
            assert_eq!(zones.point(7, &id, "pickup"), Some(point));
            assert_ne!(zones.point(7, &id, "dropoff"), Some(point));
            let km = point.distance_km(centroid);
            assert!(km <= radius * 1.001, "{km} {radius}");
            inner += u32::from(km < radius / 2.0);
            points.push(point);
        }
        // A quarter of the area lies within half the radius.
        assert!((400..600).contains(&inner), "{inner}");
        let mean = points.iter().map(|p| p.lat()).sum::<f64>() / 2000.0;
        assert!((mean - 40.7).abs() < 0.001, "{mean}");
    }

    #[test]
    fn without_jitter_points_are_the_centroid_and_no_box_is_needed() {
        let zones = zones("LocationID,centroid_lat,centroid_lon\n7,40.7,-74\n", false).unwrap();
        let id = RequestId::new("r").unwrap();
        assert_eq!(zones.point(7, &id, "pickup"), Place::new(40.7, -74.0).ok());
        assert_eq!(zones.point(8, &id, "pickup"), None);
    }

    #[test]
    fn a_wrong_zones_file_is_refused_with_row_and_column() {
        for (text, part) in [
            (
                "LocationID,centroid_lat\n1,2\n",
                "no column for centroid_lon",
            ),
            (
                &ONE.replace("40.7,", "x,"),
                "row 2, column \"centroid_lat\"",
            ),
            (
                &ONE.replace("40.69,", "40.99,"),
                "the box ends before it begins",
            ),
            (
                &format!("{ONE}{}", ONE.lines().nth(1).unwrap()),
                "row 3, column \"LocationID\"",
            ),
            (&ONE.replace("7,\"", "-7,\""), "not a zone id"),
        ] {
            let text = zones(text, true).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
