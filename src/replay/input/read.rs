//! Reads all files of a run into one clean demand.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{
    cells::Cell,
    columns::{Columns, list_headers},
    csv_rows::CsvRows,
    demand::{Demand, Trip},
    error::InputError,
    fields::{FIELDS, Field},
    log::RecordedRun,
    open::{Opened, Progress, open},
    options::ReadOptions,
    parquet_rows::ParquetRows,
    report::{InputReport, Reason},
    resolution::{on_minute_share, time_resolution},
    rows::{RowSink, zone_and_range},
    times::Stamp,
    trips::clean,
    zones::Zones,
};
use crate::domain::UnixMs;

/// Reads recorded demand from `files`, which are merged as one run. Each may be CSV (plain, gzip
/// or zstd) or Parquet, told by its content, with Kheya's own columns or those of trip records.
/// `progress` is called with the bytes read so far and those of all files.
///
/// The demand is the same for any order of the rows and of the files. Memory: about 150 bytes a
/// row inside the range asked for.
///
/// # Errors
/// A file cannot be read, its columns or dates are not understood without help, an option cannot
/// be followed, or no row is usable; the message names the place.
pub fn read_demand(
    files: &[PathBuf],
    options: &ReadOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Demand, InputError> {
    if let Some(run) = RecordedRun::read(files, None, progress)? {
        return run.demand(options);
    }
    let (tz, range) = zone_and_range(options)?;
    if let Some(share) = options.sample
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(InputError::Option {
            option: "--sample",
            value: share.to_string(),
            detail: "not a share above 0 and at most 1".into(),
        });
    }
    refuse_repeated(files)?;
    let zones = match &options.zones {
        Some(path) => Some(Zones::read(path, options.zone_jitter, options.seed)?),
        None => None,
    };
    let total = files
        .iter()
        .filter_map(|file| fs::metadata(file).ok())
        .map(|m| m.len())
        .sum();
    let progress = Progress::new(total, progress);
    let mut sink = RowSink::new(tz, range);
    for file in files {
        let before = sink.rows_read;
        match open(file, &progress)? {
            Opened::Text { head, reader } => {
                let rows = CsvRows::new(file, &head, reader)?;
                read_csv(file, rows, options, &mut sink)?;
            }
            Opened::Parquet(opened) => {
                let rows = ParquetRows::new(file, opened)?;
                read_parquet(file, &rows, options, &mut sink, &progress)?;
            }
        }
        if sink.rows_read == before {
            return Err(InputError::NoRows { file: file.clone() });
        }
    }
    progress.finish();
    assemble(files, sink, zones.as_ref(), options)
}

fn refuse_repeated(files: &[PathBuf]) -> Result<(), InputError> {
    if files.is_empty() {
        return Err(InputError::NoFile);
    }
    let mut seen = std::collections::HashSet::new();
    for file in files {
        let same = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        if !seen.insert(same) {
            return Err(InputError::SameFile { file: file.clone() });
        }
    }
    Ok(())
}

fn read_csv(
    file: &Path,
    mut rows: CsvRows<'_>,
    options: &ReadOptions,
    sink: &mut RowSink,
) -> Result<(), InputError> {
    if options.map.is_empty() && looks_like_data(rows.header(), sink) {
        return Err(InputError::NoHeader {
            file: file.into(),
            first: list_headers(rows.header()),
            example: "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng",
        });
    }
    let columns = find_columns(file, rows.header().to_vec(), options)?;
    let width = columns.width();
    let index = Field::ALL.map(|field| columns.index(field));
    sink.add_source(file, columns);
    let mut swallowed = None;
    while let Some(record) = rows.next()? {
        let surplus = record
            .iter()
            .skip(width)
            .any(|field| !field.trim_ascii().is_empty());
        if record.len() < width || surplus {
            sink.reject(Reason::Ragged);
            if rows.lines() > 1 && swallowed.is_none() {
                swallowed = Some((rows.line(), rows.lines()));
            }
            continue;
        }
        let cells: [Cell<'_>; FIELDS] = std::array::from_fn(|field| {
            index[field]
                .and_then(|i| record.get(i))
                .map_or(Cell::Missing, Cell::Text)
        });
        sink.push(&cells)?;
    }
    if let Some((row, lines)) = swallowed {
        sink.notes.push(format!(
            "{}: row {row} spans {lines} lines and was left out as one; is a quote left open there?",
            file.display()
        ));
    }
    Ok(())
}

fn read_parquet(
    file: &Path,
    rows: &ParquetRows,
    options: &ReadOptions,
    sink: &mut RowSink,
    progress: &Progress<'_>,
) -> Result<(), InputError> {
    let columns = find_columns(file, rows.header(), options)?;
    if let Some(column) = rows.utc_column(&columns)
        && options.tz.is_some()
    {
        sink.notes.push(format!(
            "{}: column {column:?} holds instants, to which --tz does not apply",
            file.display()
        ));
    }
    sink.add_source(file, columns.clone());
    let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
    let before = progress.done();
    rows.read(&columns, &mut |cells| sink.push(cells), &|share| {
        progress.reach(before + (bytes as f64 * share) as u64);
    })
}

/// The columns of a file, and that zones can be looked up where it names them.
fn find_columns(
    file: &Path,
    headers: Vec<String>,
    options: &ReadOptions,
) -> Result<Columns, InputError> {
    let columns = Columns::find(file, headers, options)?;
    for field in [Field::PickupZone, Field::DropoffZone] {
        if let (Some(column), None) = (columns.header(field), &options.zones) {
            return Err(InputError::NoZones {
                file: file.into(),
                column: column.to_owned(),
            });
        }
    }
    Ok(columns)
}

/// No header is known, and most of what stands there are numbers and times.
fn looks_like_data(header: &[String], sink: &RowSink) -> bool {
    let filled = header.iter().filter(|text| !text.is_empty());
    let (mut all, mut data) = (0, 0);
    for text in filled {
        all += 1;
        data += u32::from(Stamp::parse(text.as_bytes(), &sink.tz) != Stamp::Bad);
    }
    all > 0 && data * 2 >= all && !Columns::any_known(header)
}

/// Decides what the columns leave open, cleans the rows and writes the report.
pub(super) fn assemble(
    files: &[PathBuf],
    mut sink: RowSink,
    zones: Option<&Zones>,
    options: &ReadOptions,
) -> Result<Demand, InputError> {
    let mut notes = std::mem::take(&mut sink.notes);
    let mut decided = Vec::with_capacity(sink.time_columns.len());
    for column in &sink.time_columns {
        let (decision, note) =
            column
                .decide(options.date_order)
                .map_err(|detail| InputError::DateOrder {
                    file: column.file.clone(),
                    column: column.name.clone(),
                    detail,
                })?;
        decided.push(decision);
        notes.extend(note);
    }
    if sink
        .sources
        .iter()
        .any(|source| source.columns.has_unused_zones())
    {
        notes.push("zones were passed over where there are coordinates".into());
    }
    let cleaned = clean(&mut sink, &decided, zones, options)?;
    notes.extend(cleaned.notes);
    let rejected = cleaned.rejected.into_map();
    let trips = cleaned.trips;
    let (Some(first), Some(last)) = (trips.first(), trips.last()) else {
        return Err(unusable(files, &sink, rejected));
    };
    let (from, to) = sink.range;
    let report = InputReport {
        files: files
            .iter()
            .map(|file| file.display().to_string())
            .collect(),
        rows_read: sink.rows_read,
        rows_used: trips.len() as u64,
        rejected,
        mapping: mapping(&sink),
        time_resolution: time_resolution(&requested(&trips)),
        on_minute_share: on_minute_share(requested(&trips)),
        trip_time_source: cleaned.time_source,
        from_ms: from.unwrap_or(first.requested_at),
        to_ms: to.unwrap_or(last.requested_at),
        notes,
    };
    assert_eq!(
        report.rows_read,
        report.rows_used + report.rows_rejected(),
        "every row read is used or counted under one reason"
    );
    Ok(Demand { trips, report })
}

fn requested(trips: &[Trip]) -> impl Iterator<Item = UnixMs> + Clone {
    trips.iter().map(|trip| trip.requested_at)
}

fn mapping(sink: &RowSink) -> BTreeMap<&'static str, String> {
    let mut mapping: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    for source in &sink.sources {
        for field in Field::ALL {
            let Some(header) = source.columns.header(field) else {
                continue;
            };
            let headers = mapping.entry(field.name()).or_default();
            if !headers.contains(&header) {
                headers.push(header);
            }
        }
    }
    mapping
        .into_iter()
        .map(|(field, headers)| (field, headers.join(" | ")))
        .collect()
}

fn unusable(files: &[PathBuf], sink: &RowSink, rejected: BTreeMap<Reason, u64>) -> InputError {
    let mut rejected: Vec<(Reason, u64)> = rejected.into_iter().collect();
    rejected.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    let hint = match (rejected.first(), sink.outside) {
        (Some((Reason::OutsideRange, _)), Some((first, last))) => format!(
            "; request times run from {} to {}, outside --from and --to (read in --tz {})",
            written(first),
            written(last),
            sink.tz.iana_name().unwrap_or("UTC")
        ),
        (Some((Reason::NoDropoff, _)), _) => "; draw drop-offs with --dropoff sample".into(),
        (Some((Reason::UnknownZone, _)), _) => "; does --zones name the right city?".into(),
        _ => String::new(),
    };
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    InputError::Unusable {
        files: files.join(", "),
        rows_read: sink.rows_read,
        rejected,
        hint,
    }
}

fn written(at: UnixMs) -> String {
    jiff::Timestamp::from_millisecond(at.get())
        .map_or_else(|_| at.to_string(), |timestamp| timestamp.to_string())
}
