//! Which column holds which field: guessed from well-known headers, or as the caller says.

use std::path::Path;

use super::{
    error::InputError,
    options::{DropoffRule, ReadOptions},
};

/// A field that a trip is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Field {
    RequestId,
    RequestedAt,
    PickupAt,
    DropoffAt,
    PickupLat,
    PickupLng,
    DropoffLat,
    DropoffLng,
    PickupZone,
    DropoffZone,
    TripS,
    Fare,
    Total,
}

/// How many fields there are.
pub(crate) const FIELDS: usize = 13;

impl Field {
    /// Every field, in the order of its number.
    pub(crate) const ALL: [Self; FIELDS] = [
        Self::RequestId,
        Self::RequestedAt,
        Self::PickupAt,
        Self::DropoffAt,
        Self::PickupLat,
        Self::PickupLng,
        Self::DropoffLat,
        Self::DropoffLng,
        Self::PickupZone,
        Self::DropoffZone,
        Self::TripS,
        Self::Fare,
        Self::Total,
    ];

    /// The fields that are times.
    pub(crate) const TIMES: [Self; 3] = [Self::RequestedAt, Self::PickupAt, Self::DropoffAt];

    /// The name used by `--map` and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestId => "request_id",
            Self::RequestedAt => "requested_at_ms",
            Self::PickupAt => "pickup_at_ms",
            Self::DropoffAt => "dropoff_at_ms",
            Self::PickupLat => "pickup_lat",
            Self::PickupLng => "pickup_lng",
            Self::DropoffLat => "dropoff_lat",
            Self::DropoffLng => "dropoff_lng",
            Self::PickupZone => "pickup_zone",
            Self::DropoffZone => "dropoff_zone",
            Self::TripS => "trip_s",
            Self::Fare => "fare",
            Self::Total => "total",
        }
    }

    /// A field by its name; the `_ms` of a time may be left out.
    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name || f.name().strip_suffix("_ms") == Some(name))
    }

    /// The well-known headers of the field, in lower case and without punctuation.
    const fn headers(self) -> &'static [&'static str] {
        match self {
            Self::RequestId => &[
                "requestid",
                "id",
                "tripid",
                "rideid",
                "orderid",
                "bookingid",
                "uniquekey",
            ],
            Self::RequestedAt => &[
                "requestedatms",
                "requestedat",
                "requestdatetime",
                "requesttime",
                "requesttimestamp",
                "requestedtime",
                "requestdate",
                "requestat",
                "bookingtime",
                "calltime",
                "timestamp",
                "datetime",
            ],
            Self::PickupAt => &[
                "pickupatms",
                "pickupat",
                "pickupdatetime",
                "tpeppickupdatetime",
                "lpeppickupdatetime",
                "trippickupdatetime",
                "pickuptime",
                "pickupdate",
                "pickuptimestamp",
                "tripstarttimestamp",
                "tripstarttime",
                "starttimestamp",
                "starttime",
                "startedat",
                "startdatetime",
            ],
            Self::DropoffAt => &[
                "dropoffatms",
                "dropoffat",
                "dropoffdatetime",
                "tpepdropoffdatetime",
                "lpepdropoffdatetime",
                "tripdropoffdatetime",
                "dropofftime",
                "dropoffdate",
                "dropofftimestamp",
                "tripendtimestamp",
                "tripendtime",
                "endtimestamp",
                "endtime",
                "endedat",
                "enddatetime",
                "stoptime",
            ],
            Self::PickupLat => &[
                "pickuplat",
                "pickuplatitude",
                "startlat",
                "startlatitude",
                "originlat",
                "originlatitude",
                "pickupcentroidlatitude",
                "startstationlatitude",
                "lat",
                "latitude",
            ],
            Self::PickupLng => &[
                "pickuplng",
                "pickuplon",
                "pickuplong",
                "pickuplongitude",
                "startlng",
                "startlon",
                "startlong",
                "startlongitude",
                "originlng",
                "originlon",
                "originlongitude",
                "pickupcentroidlongitude",
                "startstationlongitude",
                "lng",
                "lon",
                "long",
                "longitude",
            ],
            Self::DropoffLat => &[
                "dropofflat",
                "dropofflatitude",
                "endlat",
                "endlatitude",
                "destinationlat",
                "destinationlatitude",
                "destlat",
                "dropoffcentroidlatitude",
                "endstationlatitude",
            ],
            Self::DropoffLng => &[
                "dropofflng",
                "dropofflon",
                "dropofflong",
                "dropofflongitude",
                "endlng",
                "endlon",
                "endlong",
                "endlongitude",
                "destinationlng",
                "destinationlon",
                "destinationlongitude",
                "destlng",
                "destlon",
                "dropoffcentroidlongitude",
                "endstationlongitude",
            ],
            Self::PickupZone => &[
                "pulocationid",
                "pickuplocationid",
                "locationid",
                "pickupzone",
                "pickupzoneid",
            ],
            Self::DropoffZone => &[
                "dolocationid",
                "dropofflocationid",
                "dropoffzone",
                "dropoffzoneid",
            ],
            Self::TripS => &[
                "trips",
                "triptimeinsecs",
                "triptime",
                "triptimes",
                "tripseconds",
                "tripduration",
                "tripdurations",
                "tripdurationseconds",
                "durations",
                "durationsec",
                "durationseconds",
            ],
            Self::Fare => &["fare", "fareamount", "fareamt", "basepassengerfare"],
            Self::Total => &["total", "totalamount", "totalamt", "triptotal"],
        }
    }
}

/// The columns of one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// For each field, the number of its column.
    index: [Option<usize>; FIELDS],
    /// Fields that the caller mapped.
    given: [bool; FIELDS],
    /// The headers, trimmed.
    headers: Vec<String>,
    /// Zones that are there but not used, because coordinates are.
    unused_zones: bool,
}

impl Columns {
    /// Finds the columns of the fields among `headers`.
    ///
    /// # Errors
    /// `--map` names a field or column that is not there, two columns fit one field, or a needed
    /// field has none.
    pub(crate) fn find(
        file: &Path,
        headers: Vec<String>,
        options: &ReadOptions,
    ) -> Result<Self, InputError> {
        let mut columns = Self {
            index: [None; FIELDS],
            given: [false; FIELDS],
            headers,
            unused_zones: false,
        };
        columns.follow(file, &options.map)?;
        columns.guess(file)?;
        columns.settle_times();
        columns.settle_places();
        columns.check(file, options)?;
        Ok(columns)
    }

    /// Whether any header is a well-known one.
    pub(crate) fn any_known(headers: &[String]) -> bool {
        headers.iter().any(|header| {
            let header = normalised(header);
            Field::ALL
                .iter()
                .any(|f| f.headers().contains(&header.as_str()))
        })
    }

    /// The number of a field's column.
    pub(crate) fn index(&self, field: Field) -> Option<usize> {
        self.index[field as usize]
    }

    /// The header of a field's column.
    pub(crate) fn header(&self, field: Field) -> Option<&str> {
        self.index(field).map(|i| self.headers[i].as_str())
    }

    /// Whether the caller named this field's column.
    pub(crate) fn is_given(&self, field: Field) -> bool {
        self.given[field as usize]
    }

    /// How many columns the file has.
    pub(crate) fn width(&self) -> usize {
        self.headers.len()
    }

    /// Whether the file also has zones, which stay unused beside its coordinates.
    pub(crate) fn has_unused_zones(&self) -> bool {
        self.unused_zones
    }

    fn follow(&mut self, file: &Path, map: &[(String, String)]) -> Result<(), InputError> {
        for (name, column) in map {
            let refuse = |detail: String| InputError::Option {
                option: "--map",
                value: format!("{name}={column}"),
                detail,
            };
            let field = Field::named(name).ok_or_else(|| {
                let names: Vec<_> = Field::ALL.iter().map(|f| f.name()).collect();
                refuse(format!(
                    "there is no field {name:?}; the fields are {}",
                    names.join(", ")
                ))
            })?;
            if self.is_given(field) {
                return Err(refuse(format!("{} is mapped twice", field.name())));
            }
            let index = self.column_named(column).ok_or_else(|| {
                let found = self.list();
                refuse(format!(
                    "{} has no column {column:?}; its columns are {found}",
                    file.display()
                ))
            })?;
            self.index[field as usize] = Some(index);
            self.given[field as usize] = true;
        }
        Ok(())
    }

    /// The column of exactly this header, else the one column that equals it but for case and
    /// punctuation.
    fn column_named(&self, column: &str) -> Option<usize> {
        let exact = self.headers.iter().position(|h| h == column.trim());
        exact.or_else(|| {
            let wanted = normalised(column);
            let mut alike = (0..self.width()).filter(|&i| normalised(&self.headers[i]) == wanted);
            let first = alike.next()?;
            alike.next().is_none().then_some(first)
        })
    }

    fn guess(&mut self, file: &Path) -> Result<(), InputError> {
        let names: Vec<String> = self.headers.iter().map(|h| normalised(h)).collect();
        let taken = self.index;
        for field in Field::ALL {
            if self.is_given(field) {
                continue;
            }
            let fits = |i: &usize| {
                field.headers().contains(&names[*i].as_str()) && !taken.contains(&Some(*i))
            };
            let mut fitting = (0..names.len()).filter(fits);
            let Some(first) = fitting.next() else {
                continue;
            };
            if let Some(second) = fitting.next() {
                return Err(InputError::TwoColumns {
                    file: file.into(),
                    field: field.name(),
                    first: self.headers[first].clone(),
                    second: self.headers[second].clone(),
                });
            }
            self.index[field as usize] = Some(first);
        }
        Ok(())
    }

    /// Without a request time of its own, the time of the pickup is the request's.
    fn settle_times(&mut self) {
        let (requested, pickup) = (Field::RequestedAt as usize, Field::PickupAt as usize);
        if self.index[requested].is_none() {
            self.index[requested] = self.index[pickup].take();
            self.given[requested] = std::mem::take(&mut self.given[pickup]);
        }
    }

    /// Coordinates are finer than zones: where a file has both, they are used, unless the caller
    /// named the zone's column.
    fn settle_places(&mut self) {
        for (zone, lat, lng) in [
            (Field::PickupZone, Field::PickupLat, Field::PickupLng),
            (Field::DropoffZone, Field::DropoffLat, Field::DropoffLng),
        ] {
            let both = self.index(lat).is_some() && self.index(lng).is_some();
            let asked_zone = self.is_given(zone) && !self.is_given(lat) && !self.is_given(lng);
            if both && !asked_zone {
                self.unused_zones |= self.index[zone as usize].take().is_some();
            } else if self.index(zone).is_some() {
                self.index[lat as usize] = None;
                self.index[lng as usize] = None;
            }
        }
    }

    fn check(&self, file: &Path, options: &ReadOptions) -> Result<(), InputError> {
        let mut missing = Vec::new();
        if self.index(Field::RequestedAt).is_none() {
            missing.push(Field::RequestedAt.name());
        }
        let mut ends = vec![(Field::PickupZone, Field::PickupLat, Field::PickupLng)];
        let dropoff = (Field::DropoffZone, Field::DropoffLat, Field::DropoffLng);
        let half = self.index(dropoff.1).is_some() != self.index(dropoff.2).is_some();
        if options.dropoff == DropoffRule::Require || half {
            ends.push(dropoff);
        }
        for (zone, lat, lng) in ends {
            if self.index(zone).is_none() {
                let absent = [lat, lng].into_iter().filter(|&f| self.index(f).is_none());
                missing.extend(absent.map(Field::name));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let only_dropoff = missing.iter().all(|name| name.starts_with("dropoff")) && !half;
        let hint = if only_dropoff {
            "; draw drop-offs with --dropoff sample, or name the columns with --map field=column"
        } else {
            "; name it with --map field=column"
        };
        Err(InputError::MissingColumns {
            file: file.into(),
            missing: missing.join(", "),
            found: self.list(),
            hint: hint.to_owned(),
        })
    }

    /// The headers for a message, cut after forty.
    fn list(&self) -> String {
        const MOST: usize = 40;
        let mut text = self
            .headers
            .iter()
            .take(MOST)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        if self.width() > MOST {
            text.push_str(", …");
        }
        text
    }
}

/// A header in lower case, letters and digits only: `Trip_Pickup_DateTime` and
/// ` trip pickup datetime` are the same.
pub(crate) fn normalised(header: &str) -> String {
    header
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
