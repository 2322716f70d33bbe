//! The files of `--out DIR`. They appear whole or not at all.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{Outcome, ReplayReport, Run, Scenario, WindowGains, tune::TuneReport};
use crate::{
    demand::DemandCounts,
    domain::{CostMs, DurationMs},
};

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file system refused.
    #[error("{}: {error}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The figures could not be written as JSON.
    #[error("run.json: {0}")]
    Json(#[from] serde_json::Error),
    /// A table could not be written as CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
}

/// Writes `run.json`, `assignments.csv` and `windows.csv` into `directory`, which is made if needed.
/// The CSV files are the same bytes for the same input, configuration and seed (INV-9).
///
/// # Errors
/// [`OutputError`] names the file; the directory then holds what it held before.
pub fn write_outputs(
    directory: &Path,
    scenario: &Scenario,
    runs: &[Run],
    report: &ReplayReport,
) -> Result<(), OutputError> {
    put_files(
        directory,
        &[
            ("run.json", (report.json()? + "\n").into_bytes()),
            ("assignments.csv", assignments(scenario, runs)?),
            ("windows.csv", windows(runs)?),
        ],
    )
}

/// Writes `tune.json` and `blocks.csv` into `directory`, which is made if needed.
///
/// # Errors
/// [`OutputError`] names the file; the directory then holds what it held before.
pub fn write_tune_outputs(directory: &Path, report: &TuneReport) -> Result<(), OutputError> {
    put_files(
        directory,
        &[
            ("tune.json", (report.json()? + "\n").into_bytes()),
            ("blocks.csv", report.blocks_csv()?),
        ],
    )
}

/// Writes `demand.json`, what demand taught, into `directory`, which is made if needed; says where
/// it stands.
///
/// # Errors
/// [`OutputError`] names the file; the directory then holds what it held before.
pub fn write_demand_model(directory: &Path, counts: &DemandCounts) -> Result<PathBuf, OutputError> {
    let name = "demand.json";
    let text = counts.to_json()? + "\n";
    put_files(directory, &[(name, text.into_bytes())])?;
    Ok(directory.join(name))
}

/// Puts files into a directory, all or none.
fn put_files(directory: &Path, files: &[(&str, Vec<u8>)]) -> Result<(), OutputError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| OutputError::Io { path, error }
    };
    fs::create_dir_all(directory).map_err(io(directory))?;
    let mut staged = Vec::new();
    for (name, content) in files {
        let path = directory.join(name);
        if path.is_dir() {
            remove_partials(&staged);
            return Err(io(&path)(io::ErrorKind::IsADirectory.into()));
        }
        let partial = directory.join(format!(".{name}.partial"));
        let written = fs::File::create(&partial).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        staged.push((partial.clone(), path));
        if let Err(error) = written {
            remove_partials(&staged);
            return Err(io(&partial)(error));
        }
    }
    for (partial, path) in &staged {
        if let Err(error) = fs::rename(partial, path) {
            remove_partials(&staged);
            return Err(io(path)(error));
        }
    }
    Ok(())
}

fn remove_partials(staged: &[(PathBuf, PathBuf)]) {
    for (partial, _) in staged {
        let _ = fs::remove_file(partial);
    }
}

/// One line a served request and policy, in the order of the requests.
fn assignments(scenario: &Scenario, runs: &[Run]) -> csv::Result<Vec<u8>> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record([
        "policy",
        "request_id",
        "driver_id",
        "requested_at_ms",
        "assigned_at_ms",
        "pickup_at_ms",
        "dropoff_at_ms",
        "pickup_eta_s",
    ])?;
    for run in runs {
        for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
            let Outcome::Assigned { driver, at, eta_s } = *outcome else {
                continue;
            };
            let pickup = at + DurationMs::from_seconds(eta_s);
            rows.write_record([
                run.policy.name(),
                trip.request.id.as_str(),
                scenario.drivers[driver as usize].snapshot.id.as_str(),
                &trip.request.requested_at_ms.to_string(),
                &at.to_string(),
                &pickup.to_string(),
                &(pickup + trip.trip).to_string(),
                &format!("{eta_s:.3}"),
            ])?;
        }
    }
    rows.into_inner().map_err(|error| error.into_error().into())
}

/// One line a window and policy, in the order of time.
fn windows(runs: &[Run]) -> csv::Result<Vec<u8>> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    // a column that would be 0 in every file of those who do not look ahead
    let ahead = runs.iter().any(|run| !run.planned.is_empty());
    let mut header = vec![
        "policy",
        "closed_at_ms",
        "requests",
        "deferred",
        "drivers",
        "edges",
        "assigned",
        "expired",
        "total_eta_s",
        "gain_vs_greedy_edge_s",
        "gain_vs_greedy_s",
        "status",
    ];
    if ahead {
        header.push("planned");
    }
    rows.write_record(header)?;
    for run in runs {
        for row in &run.windows {
            let gain_s = |gain: fn(WindowGains) -> CostMs| {
                row.gains
                    .map_or_else(String::new, |gains| gain(gains).as_seconds().to_string())
            };
            let mut record = vec![
                run.policy.name().to_owned(),
                row.closed_at.to_string(),
                row.requests.to_string(),
                row.deferred.to_string(),
                row.drivers.to_string(),
                row.edges.to_string(),
                row.assigned.to_string(),
                row.expired.to_string(),
                format!("{:.3}", row.total_eta_s),
                gain_s(|gains| gains.vs_greedy_edge),
                gain_s(|gains| gains.vs_greedy),
                row.gains
                    .map_or_else(String::new, |gains| gains.status.to_string()),
            ];
            if ahead {
                record.push(row.planned.to_string());
            }
            rows.write_record(record)?;
        }
    }
    rows.into_inner().map_err(|error| error.into_error().into())
}
