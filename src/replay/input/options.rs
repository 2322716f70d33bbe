//! What the caller may say about the files: column names, time zone, range, sampling.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// How to read recorded demand. The default suits files that say everything themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// `(field, column)` pairs that override the guessed columns.
    pub map: Vec<(String, String)>,
    /// A CSV of zones (id, centroid, box) for files that give zone ids instead of coordinates.
    pub zones: Option<PathBuf>,
    /// Spread the points of a zone over a disc (`true`), or put them all on its centroid.
    pub zone_jitter: bool,
    /// IANA name of the zone of wall-clock times; UTC when absent.
    pub tz: Option<String>,
    /// First request time used: a date and time in `tz`, or epoch seconds or milliseconds.
    pub from: Option<String>,
    /// First request time no longer used, written like `from`.
    pub to: Option<String>,
    /// The order of day, month and year, for dates that can be read in several ways.
    pub date_order: Option<DateOrder>,
    /// What to do with a row whose drop-off is missing or unusable.
    pub dropoff: DropoffRule,
    /// Share of the requests to keep, in (0, 1], drawn by request id.
    pub sample: Option<f64>,
    /// Seed of every draw made while reading.
    pub seed: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            map: Vec::new(),
            zones: None,
            zone_jitter: true,
            tz: None,
            from: None,
            to: None,
            date_order: None,
            dropoff: DropoffRule::Require,
            sample: None,
            seed: 0,
        }
    }
}

/// The order of the three numbers of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year: `12/31/2013`.
    Mdy,
    /// Day, month, year: `31/12/2013`.
    Dmy,
    /// Year, month, day: `2013-12-31`.
    Ymd,
}

impl DateOrder {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Mdy, Self::Dmy, Self::Ymd];

    /// The name used on the command line: `mdy`, `dmy` or `ymd`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mdy => "mdy",
            Self::Dmy => "dmy",
            Self::Ymd => "ymd",
        }
    }
}

impl std::str::FromStr for DateOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|order| order.name() == text)
            .ok_or_else(|| format!("a date order is mdy, dmy or ymd, not {text:?}"))
    }
}

impl Serialize for DateOrder {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// What to do with a row whose drop-off is missing or unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DropoffRule {
    /// Skip the row under `no_dropoff`.
    #[default]
    Require,
    /// Draw a drop-off, by request id, from those of the used rows.
    Sample,
}

impl std::str::FromStr for DropoffRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "require" => Ok(Self::Require),
            "sample" => Ok(Self::Sample),
            _ => Err(format!(
                "a drop-off rule is require or sample, not {text:?}"
            )),
        }
    }
}
