//! What was read, what was left out and why, and what was guessed.

use std::{collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};

use crate::{
    demand::Span,
    domain::{DurationMs, UnixMs},
};

/// Why a row was not used. Every row read is used, or counted under exactly one of these: its time
/// is judged before its id, then the pickup, the drop-off, and last what only other rows show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The row has fewer fields than the header, or more that are not empty.
    Ragged,
    /// The request time cannot be read, or does not exist in its time zone.
    BadTime,
    /// A needed field is empty: the id (where there is a column of ids), the time, the pickup.
    Missing,
    /// The request time is before `--from` or not before `--to`.
    OutsideRange,
    /// The id is not 1 to 128 printable ASCII characters without `/`.
    BadId,
    /// A pickup coordinate or zone is not a number.
    BadNumber,
    /// The pickup is at 0, 0: a position that was never known.
    ZeroCoordinates,
    /// The pickup is not on earth (WGS-84 degrees).
    OutOfRange,
    /// The pickup's zone is not in the zones file.
    UnknownZone,
    /// Latitude and longitude stand in each other's place: exchanged, the pickup would lie among
    /// the others.
    SwappedCoordinates,
    /// The pickup or the drop-off is over 100 km from the median pickup.
    FarAway,
    /// The drop-off is missing or unusable.
    NoDropoff,
    /// The negative twin of a fare reversal: the same trip again with its fare taken back.
    Reversal,
    /// An id that came before, with the same fields.
    DuplicateId,
    /// An id that came before, with other fields.
    IdConflict,
    /// Left out by `--sample`.
    SampledOut,
}

impl Reason {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ragged => "ragged",
            Self::BadTime => "bad_time",
            Self::Missing => "missing",
            Self::OutsideRange => "outside_range",
            Self::BadId => "bad_id",
            Self::BadNumber => "bad_number",
            Self::ZeroCoordinates => "zero_coordinates",
            Self::OutOfRange => "out_of_range",
            Self::UnknownZone => "unknown_zone",
            Self::SwappedCoordinates => "swapped_coordinates",
            Self::FarAway => "far_away",
            Self::NoDropoff => "no_dropoff",
            Self::Reversal => "reversal",
            Self::DuplicateId => "duplicate_id",
            Self::IdConflict => "id_conflict",
            Self::SampledOut => "sampled_out",
        }
    }
}

impl InputReport {
    /// The time that was used.
    pub const fn span(&self) -> Span {
        Span {
            from: self.from_ms,
            to: self.to_ms,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// How many used rows took their trip time from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TripTimeSource {
    /// The recorded trip time.
    pub trip_s: u64,
    /// Drop-off time minus pickup time.
    pub dropoff_time: u64,
    /// Neither was usable: the straight-line time stands in.
    pub straight_line: u64,
}

/// The account of one reading; the `input` object of a replay's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputReport {
    /// The files, as they were given.
    pub files: Vec<String>,
    /// Rows read: `rows_used` and everything in `rejected`.
    pub rows_read: u64,
    /// Rows that became trips.
    pub rows_used: u64,
    /// Rows left out, by reason; only reasons that occurred.
    pub rejected: BTreeMap<Reason, u64>,
    /// Field → column, guessed or given; ` | ` stands between the columns of files that differ.
    pub mapping: BTreeMap<&'static str, String>,
    /// The coarsest step on which the request times lie, in text such as `1s` in JSON.
    #[serde(serialize_with = "step_text")]
    pub time_resolution: DurationMs,
    /// Share of the used request times that lie on a full minute.
    pub on_minute_share: f64,
    /// Where the trip times came from.
    pub trip_time_source: TripTimeSource,
    /// `--from`, or the first used request time.
    pub from_ms: UnixMs,
    /// `--to`, or the last used request time.
    pub to_ms: UnixMs,
    /// What was decided or looks odd, in whole sentences: the order of dates and how it was found,
    /// coordinates used in place of zones, and the like.
    pub notes: Vec<String>,
}

impl InputReport {
    /// The rows left out, over all reasons.
    pub fn rows_rejected(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// Whole seconds as `60s`, else `1ms`.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field by reference"
)]
fn step_text<S: Serializer>(step: &DurationMs, s: S) -> Result<S::Ok, S::Error> {
    let ms = step.get();
    if ms % 1000 == 0 && ms > 0 {
        s.collect_str(&format_args!("{}s", ms / 1000))
    } else {
        s.collect_str(&format_args!("{ms}ms"))
    }
}
