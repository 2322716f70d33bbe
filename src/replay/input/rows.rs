//! Raw rows of every format, gathered as far as one row alone can be understood.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::{
    cells::{Cell, NoNumber},
    columns::Columns,
    date_order::TimeColumn,
    error::InputError,
    fields::{FIELDS, Field},
    options::ReadOptions,
    report::Reason,
    times::Stamp,
};
use crate::domain::{RequestId, UnixMs};

/// Most rows that are kept for cleaning, about 3 GB of them.
const MAX_ROWS: usize = 20_000_000;

/// Half-open; an open end is `None`.
pub(crate) type TimeRange = (Option<UnixMs>, Option<UnixMs>);

/// One end of a trip, as recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// Two finite numbers, which may not be on earth.
    Point { lat: f64, lng: f64 },
    /// A zone's id, which may be unknown.
    Zone(u32),
    /// Unusable.
    Flawed(Reason),
}

/// A row whose dates may still await the order of their column.
#[derive(Debug, Clone)]
pub(crate) struct RawRow {
    /// The id; `None` where the file has no such column.
    pub(crate) id: Option<RequestId>,
    /// Request, pickup and drop-off time.
    pub(crate) times: [Stamp; 3],
    pub(crate) pickup: End,
    pub(crate) dropoff: End,
    /// Recorded trip time, NaN when there is none.
    pub(crate) trip_s: f64,
    /// Amounts of money, NaN when there are none.
    pub(crate) fare: f32,
    pub(crate) total: f32,
    /// Which of the sources it came from.
    pub(crate) source: u32,
    /// A bad id: told only after the time, which may yet prove worse.
    pub(crate) bad_id: Option<Reason>,
}

/// A file as far as its rows need to know it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) columns: Columns,
    /// The file's time columns among [`RowSink::time_columns`], for request, pickup, drop-off.
    pub(crate) times: [Option<usize>; 3],
}

/// Takes rows in, counts those that are plainly unusable, keeps the others.
pub(crate) struct RowSink {
    pub(crate) tz: TimeZone,
    /// Half-open range of request times.
    pub(crate) range: TimeRange,
    pub(crate) rows: Vec<RawRow>,
    pub(crate) rows_read: u64,
    pub(crate) rejected: Rejected,
    pub(crate) time_columns: Vec<TimeColumn>,
    pub(crate) sources: Vec<Source>,
    /// Sentences for the report.
    pub(crate) notes: Vec<String>,
    /// First and last request time outside the range.
    pub(crate) outside: Option<(UnixMs, UnixMs)>,
}

/// Rows left out, counted by reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rejected(std::collections::BTreeMap<Reason, u64>);

impl Rejected {
    pub(crate) fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    pub(crate) fn into_map(self) -> std::collections::BTreeMap<Reason, u64> {
        self.0
    }
}

impl RowSink {
    pub(crate) fn new(tz: TimeZone, range: TimeRange) -> Self {
        Self {
            tz,
            range,
            rows: Vec::new(),
            rows_read: 0,
            rejected: Rejected::default(),
            time_columns: Vec::new(),
            sources: Vec::new(),
            notes: Vec::new(),
            outside: None,
        }
    }

    /// Announces a file; its rows follow.
    pub(crate) fn add_source(&mut self, file: &Path, columns: Columns) {
        let times = Field::TIMES.map(|field| {
            let name = columns.header(field)?;
            let known = self.time_columns.iter().position(|c| c.name == name);
            Some(known.unwrap_or_else(|| {
                self.time_columns.push(TimeColumn::new(name, file));
                self.time_columns.len() - 1
            }))
        });
        self.sources.push(Source {
            file: file.into(),
            columns,
            times,
        });
    }

    /// Counts a row that does not fit its header.
    pub(crate) fn reject(&mut self, reason: Reason) {
        self.rows_read += 1;
        self.rejected.count(reason);
    }

    /// Takes a row of the source announced last, its cells in the order of [`Field::ALL`].
    ///
    /// # Errors
    /// There are more rows than can be held.
    pub(crate) fn push(&mut self, cells: &[Cell<'_>; FIELDS]) -> Result<(), InputError> {
        let source = self.sources.len() - 1;
        let mut times = [Stamp::Missing; 3];
        for (i, field) in Field::TIMES.into_iter().enumerate() {
            let Some(column) = self.sources[source].times[i] else {
                continue;
            };
            times[i] = self.stamp(cells[field as usize]);
            self.time_columns[column].see(times[i]);
        }
        self.rows_read += 1;
        let early = match times[0] {
            Stamp::Bad => Some(Reason::BadTime),
            Stamp::Missing => Some(Reason::Missing),
            Stamp::At(at) => self.outside_range(at),
            Stamp::Epoch(_) | Stamp::Loose(_) => None,
        };
        if let Some(reason) = early {
            self.rejected.count(reason);
            return Ok(());
        }
        if self.rows.len() == MAX_ROWS {
            return Err(InputError::TooManyRows { limit: MAX_ROWS });
        }
        let columns = &self.sources[source].columns;
        let row = raw_row(cells, times, columns, source as u32);
        self.rows.push(row);
        Ok(())
    }

    /// [`Reason::OutsideRange`] for a request time that was not asked for.
    pub(crate) fn outside_range(&mut self, at: UnixMs) -> Option<Reason> {
        let (from, to) = self.range;
        if from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to) {
            return None;
        }
        let (first, last) = self.outside.unwrap_or((at, at));
        self.outside = Some((first.min(at), last.max(at)));
        Some(Reason::OutsideRange)
    }

    fn stamp(&self, cell: Cell<'_>) -> Stamp {
        match cell {
            Cell::Missing => Stamp::Missing,
            Cell::Text(text) => match Stamp::parse(text, &self.tz) {
                Stamp::Bad if cell.number() == Err(NoNumber::Missing) => Stamp::Missing,
                stamp => stamp,
            },
            Cell::Int(number) => Stamp::Epoch(number as f64),
            Cell::Float(number) if number.is_nan() => Stamp::Missing,
            Cell::Float(number) if number.is_finite() => Stamp::Epoch(number),
            Cell::Float(_) => Stamp::Bad,
            Cell::WallMs(wall) => Stamp::from_wall_ms(wall, &self.tz),
            Cell::UnixMs(ms) => Stamp::from_unix_ms(ms),
        }
    }
}

/// The time zone and range that the options ask for.
///
/// # Errors
/// The zone is unknown, a bound is no time, or the range is empty.
pub(crate) fn zone_and_range(options: &ReadOptions) -> Result<(TimeZone, TimeRange), InputError> {
    let tz = match &options.tz {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|_| InputError::Option {
            option: "--tz",
            value: name.clone(),
            detail: "no such time zone; give an IANA name such as America/New_York".into(),
        })?,
    };
    let bound = |option: &'static str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let refuse = |detail: String| InputError::Option {
            option,
            value: text.clone(),
            detail,
        };
        let stamp = Stamp::parse(text.as_bytes(), &tz);
        let mut column = TimeColumn::new(option, Path::new(option));
        column.see(stamp);
        let (decided, _) = column
            .decide(options.date_order)
            .map_err(|detail| refuse(format!("{detail}; write it as 2013-01-31T08:00")))?;
        match decided.at(stamp, &tz) {
            Ok(Some(at)) => Ok(Some(at)),
            _ => Err(refuse(
                "not a time, or one that the time zone skips; write it as 2013-01-31T08:00".into(),
            )),
        }
    };
    let range = (bound("--from", &options.from)?, bound("--to", &options.to)?);
    if let (Some(from), Some(to)) = range
        && from >= to
    {
        return Err(InputError::Option {
            option: "--to",
            value: options.to.clone().unwrap_or_default(),
            detail: "not later than --from".into(),
        });
    }
    Ok((tz, range))
}

fn raw_row(
    cells: &[Cell<'_>; FIELDS],
    times: [Stamp; 3],
    columns: &Columns,
    source: u32,
) -> RawRow {
    let cell = |field: Field| cells[field as usize];
    let (mut id, mut bad_id) = (None, None);
    if columns.index(Field::RequestId).is_some() {
        match cell(Field::RequestId).id_text() {
            Ok(text) => match RequestId::new(&text) {
                Ok(good) => id = Some(good),
                Err(_) => bad_id = Some(Reason::BadId),
            },
            Err(NoNumber::Missing) => bad_id = Some(Reason::Missing),
            Err(NoNumber::Bad) => bad_id = Some(Reason::BadId),
        }
    }
    let end = |zone: Field, lat: Field, lng: Field| {
        if columns.index(zone).is_some() {
            return cell(zone).zone().map_or_else(flawed, End::Zone);
        }
        match (cell(lat).number(), cell(lng).number()) {
            (Ok(0.0), Ok(0.0)) => End::Flawed(Reason::ZeroCoordinates),
            (Ok(lat), Ok(lng)) => End::Point { lat, lng },
            (Err(NoNumber::Missing), _) | (_, Err(NoNumber::Missing)) => flawed(NoNumber::Missing),
            (Err(NoNumber::Bad), _) | (_, Err(NoNumber::Bad)) => flawed(NoNumber::Bad),
        }
    };
    RawRow {
        id,
        times,
        pickup: end(Field::PickupZone, Field::PickupLat, Field::PickupLng),
        dropoff: end(Field::DropoffZone, Field::DropoffLat, Field::DropoffLng),
        trip_s: cell(Field::TripS).number().unwrap_or(f64::NAN),
        fare: cell(Field::Fare).number().map_or(f32::NAN, |n| n as f32),
        total: cell(Field::Total).number().map_or(f32::NAN, |n| n as f32),
        source,
        bad_id,
    }
}

fn flawed(why: NoNumber) -> End {
    End::Flawed(match why {
        NoNumber::Missing => Reason::Missing,
        NoNumber::Bad => Reason::BadNumber,
    })
}
