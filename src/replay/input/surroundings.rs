//! Whether a place lies where the demand is: on earth, in a known zone, near the other pickups,
//! and not with its latitude and longitude exchanged.

use super::{
    error::InputError,
    fields::Field,
    report::Reason,
    rows::{End, Source},
    trips::Row,
    zones::Zones,
};
use crate::domain::{Place, haversine_of_km};

/// A place farther than this from the median pickup is taken for an error.
const FAR_KM: f64 = 100.0;

/// Within this many degrees of the median in both directions (at most 63 km) a place is near
/// without computing its distance.
const NEAR_DEGREES: f64 = 0.4;

/// No city with taxis lies outside these latitudes (Ushuaia −54.8, Utqiaġvik 71.3).
const INHABITED_LAT: std::ops::RangeInclusive<f64> = -56.0..=72.0;

/// The middle of the demand and the zones it may name.
pub(crate) struct Surroundings<'a> {
    median: Option<Place>,
    zones: Option<&'a Zones>,
    notes: Vec<String>,
}

impl<'a> Surroundings<'a> {
    /// Looks at all rows at once.
    ///
    /// # Errors
    /// In one of the files most places would lie in a city only with latitude and longitude
    /// exchanged.
    pub(crate) fn of(
        rows: &[Row],
        sources: &[Source],
        zones: Option<&'a Zones>,
    ) -> Result<Self, InputError> {
        let mut around = Self {
            median: None,
            zones,
            notes: Vec::new(),
        };
        around.look_for_swapped_columns(rows, sources)?;
        let pickups = rows.iter().filter_map(|row| around.place(row.pickup).ok());
        let (mut lats, mut lngs): (Vec<_>, Vec<_>) =
            pickups.map(|place| (place.lat(), place.lng())).unzip();
        around.median = match (median(&mut lats), median(&mut lngs)) {
            (Some(lat), Some(lng)) => Place::new(lat, lng).ok(),
            _ => None,
        };
        Ok(around)
    }

    /// What looks odd but is used.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Whether an end can be used.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, end: End) -> Result<(), Reason> {
        let place = self.place(end);
        if let Ok(place) = place
            && self.is_near(place)
        {
            return Ok(());
        }
        if let End::Point { lat, lng } = end
            && let Ok(exchanged) = Place::new(lng, lat)
            && self.is_near(exchanged)
        {
            return Err(Reason::SwappedCoordinates);
        }
        // One zero alone may be the equator or Greenwich, but not far from all others.
        if let End::Point { lat, lng } = end
            && (lat == 0.0 || lng == 0.0)
        {
            return Err(Reason::ZeroCoordinates);
        }
        place.and(Err(Reason::FarAway))
    }

    /// The place of an end, a zone's middle for a zone.
    fn place(&self, end: End) -> Result<Place, Reason> {
        match end {
            End::Point { lat, lng } => Place::new(lat, lng).map_err(|_| Reason::OutOfRange),
            End::Zone(zone) => self
                .zones
                .and_then(|zones| zones.centroid(zone))
                .ok_or(Reason::UnknownZone),
            End::Flawed(reason) => Err(reason),
        }
    }

    fn is_near(&self, place: Place) -> bool {
        let Some(median) = self.median else {
            return false;
        };
        let close = |a: f64, b: f64| (a - b).abs() <= NEAR_DEGREES;
        let in_box = close(place.lat(), median.lat()) && close(place.lng(), median.lng());
        in_box || place.on_sphere().haversine(median.on_sphere()) <= haversine_of_km(FAR_KM)
    }

    fn look_for_swapped_columns(
        &mut self,
        rows: &[Row],
        sources: &[Source],
    ) -> Result<(), InputError> {
        let ends = [
            (Field::PickupLat, Field::PickupLng),
            (Field::DropoffLat, Field::DropoffLng),
        ];
        for (which, (lat_field, lng_field)) in ends.into_iter().enumerate() {
            let mut counts = vec![(0_u64, 0_u64, None); sources.len()];
            for row in rows {
                let end = if which == 0 { row.pickup } else { row.dropoff };
                let End::Point { lat, lng } = end else {
                    continue;
                };
                let count = &mut counts[row.source as usize];
                count.0 += 1;
                if !INHABITED_LAT.contains(&lat)
                    && INHABITED_LAT.contains(&lng)
                    && lat.abs() <= 180.0
                {
                    count.1 += 1;
                    count.2.get_or_insert((lat, lng));
                }
            }
            for (source, (all, swapped, example)) in sources.iter().zip(counts) {
                let Some(example) = example.filter(|_| swapped * 2 > all) else {
                    continue;
                };
                let columns = &source.columns;
                let (Some(lat), Some(lng)) = (columns.header(lat_field), columns.header(lng_field))
                else {
                    continue;
                };
                let detail = format!(
                    "latitude and longitude seem exchanged: column {lat:?} holds {} and column \
                     {lng:?} holds {} where {swapped} of {all} rows would otherwise lie outside \
                     every city; if so, use --map {}={lng} --map {}={lat}",
                    example.0,
                    example.1,
                    lat_field.name(),
                    lng_field.name()
                );
                if columns.is_given(lat_field) && columns.is_given(lng_field) {
                    self.notes.push(detail);
                } else {
                    return Err(InputError::Swapped {
                        file: source.file.clone(),
                        detail,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The lower median.
fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let (_, median, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}
