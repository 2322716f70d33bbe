//! Writes small files and reads them.

use std::{fmt::Write as _, path::PathBuf};

use kheya::replay::input::{Demand, InputError, ReadOptions, Reason, read_demand};

/// The header of Kheya's plainest CSV.
pub(crate) const PLAIN: &str =
    "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,trip_s\n";

/// A file that lives as long as its directory.
pub(crate) struct TempFile {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn file(name: &str, bytes: impl AsRef<[u8]>) -> TempFile {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    TempFile { _dir: dir, path }
}

pub(crate) fn read_with(
    bytes: impl AsRef<[u8]>,
    options: &ReadOptions,
) -> Result<Demand, InputError> {
    let file = file("demand.csv", bytes);
    read_demand(&[file.path], options, &|_, _| {})
}

pub(crate) fn read(bytes: impl AsRef<[u8]>) -> Demand {
    read_with(bytes, &ReadOptions::default()).unwrap()
}

pub(crate) fn refusal(bytes: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    let text = read_with(bytes, options).unwrap_err().to_string();
    assert!(!text.contains('\n'), "one sentence: {text}");
    text
}

/// Plain rows: the given ones, and nine good ones around Times Square.
pub(crate) fn among_good(rows: &[&str]) -> String {
    let mut text = PLAIN.to_owned();
    for i in 0..9 {
        writeln!(
            text,
            "g{i},{},40.75{i},-73.98,40.76,-73.97,300",
            1_357_016_400_000_i64 + i
        )
        .unwrap();
    }
    for row in rows {
        text += row;
        text.push('\n');
    }
    text
}

/// How many rows were left out, by reason.
pub(crate) fn rejected(demand: &Demand) -> Vec<(Reason, u64)> {
    let report = &demand.report;
    assert_eq!(report.rows_read, report.rows_used + report.rows_rejected());
    assert_eq!(report.rows_used, demand.trips.len() as u64);
    report.rejected.clone().into_iter().collect()
}

pub(crate) fn ids(demand: &Demand) -> Vec<&str> {
    demand
        .trips
        .iter()
        .map(|trip| trip.request_id.as_str())
        .collect()
}

pub(crate) fn options() -> ReadOptions {
    ReadOptions::default()
}

pub(crate) fn new_york() -> ReadOptions {
    ReadOptions {
        tz: Some("America/New_York".into()),
        ..options()
    }
}

/// Three zones of New York and their boxes.
pub(crate) const ZONES: &str = "\
LocationID,borough,zone,centroid_lat,centroid_lon,min_lat,min_lon,max_lat,max_lon,polygons
161,Manhattan,Midtown Center,40.758,-73.978,40.753,-73.984,40.763,-73.971,1
230,Manhattan,\"Times Sq, Theatre\",40.7598,-73.9845,40.755,-73.991,40.765,-73.978,1
1,EWR,Newark Airport,40.69183,-74.174002,40.670976,-74.189965,40.707998,-74.153076,1
";
