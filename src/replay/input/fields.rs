//! The fields that a trip is made of, and the headers they are known by.

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
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name || f.name().strip_suffix("_ms") == Some(name))
    }

    /// Whether a [`normalised`] header is a well-known one of this field.
    pub(crate) fn is_known_as(self, header: &str) -> bool {
        self.headers()
            .split_ascii_whitespace()
            .any(|known| known == header)
    }

    /// The well-known headers of the field, normalised.
    const fn headers(self) -> &'static str {
        match self {
            Self::RequestId => "requestid id tripid rideid orderid bookingid uniquekey",
            Self::RequestedAt => {
                "requestedatms requestedat requestdatetime requesttime \
                 requesttimestamp requestedtime requestdate requestat bookingtime \
                 calltime timestamp datetime"
            }
            Self::PickupAt => {
                "pickupatms pickupat pickupdatetime tpeppickupdatetime \
                 lpeppickupdatetime trippickupdatetime pickuptime pickupdate \
                 pickuptimestamp tripstarttimestamp tripstarttime starttimestamp \
                 starttime startedat startdatetime"
            }
            Self::DropoffAt => {
                "dropoffatms dropoffat dropoffdatetime tpepdropoffdatetime \
                 lpepdropoffdatetime tripdropoffdatetime dropofftime dropoffdate \
                 dropofftimestamp tripendtimestamp tripendtime endtimestamp endtime \
                 endedat enddatetime stoptime"
            }
            Self::PickupLat => {
                "pickuplat pickuplatitude startlat startlatitude originlat \
                 originlatitude pickupcentroidlatitude startstationlatitude lat \
                 latitude"
            }
            Self::PickupLng => {
                "pickuplng pickuplon pickuplong pickuplongitude startlng startlon \
                 startlong startlongitude originlng originlon originlongitude \
                 pickupcentroidlongitude startstationlongitude lng lon long \
                 longitude"
            }
            Self::DropoffLat => {
                "dropofflat dropofflatitude endlat endlatitude destinationlat \
                 destinationlatitude destlat dropoffcentroidlatitude \
                 endstationlatitude"
            }
            Self::DropoffLng => {
                "dropofflng dropofflon dropofflong dropofflongitude endlng endlon \
                 endlong endlongitude destinationlng destinationlon \
                 destinationlongitude destlng destlon dropoffcentroidlongitude \
                 endstationlongitude"
            }
            Self::PickupZone => "pulocationid pickuplocationid locationid pickupzone pickupzoneid",
            Self::DropoffZone => "dolocationid dropofflocationid dropoffzone dropoffzoneid",
            Self::TripS => {
                "trips triptimeinsecs triptime triptimes tripseconds tripduration \
                 tripdurations tripdurationseconds durations durationsec \
                 durationseconds"
            }
            Self::Fare => "fare fareamount fareamt basepassengerfare",
            Self::Total => "total totalamount totalamt triptotal",
        }
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
