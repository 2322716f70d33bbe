//! `kheya replay --verify`: the windows of a record decided again.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use serde::Serialize;

use super::{Failure, Format, print, progress::Bar};
use crate::record::{self, Tally, VerifyReport};

#[derive(Serialize)]
struct Report<'a> {
    verified: bool,
    #[serde(flatten)]
    found: &'a VerifyReport,
    wall_s: f64,
}

/// Verifies records and prints what came out; a difference is a failure.
pub(super) fn verify(paths: &[PathBuf], format: Format) -> Result<(), Failure> {
    let is_other = |path: &&PathBuf| path.is_file() && !record::is_record(path);
    if let Some(other) = paths.iter().find(is_other) {
        let other = other.display();
        return Err(Failure::Input(format!("{other}: no record of kheya serve")));
    }
    let started = Instant::now();
    let bar = Bar::new("verifying", 1, 1);
    let report = record::verify(paths, &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    let report = report.map_err(|e| Failure::input(&e))?;
    let wall_s = started.elapsed().as_secs_f64();
    match format {
        Format::Human => print(&human(&report, wall_s))?,
        Format::Json => {
            let verified = report.holds();
            let report = Report {
                verified,
                found: &report,
                wall_s,
            };
            let text = serde_json::to_string_pretty(&report).map_err(|e| Failure::broken(&e))?;
            print(&(text + "\n"))?;
        }
    }
    if report.holds() {
        return Ok(());
    }
    let different = report.decisions.different + report.repairs.different;
    Err(Failure::Broken(format!(
        "{different} of {} recorded decisions came out otherwise",
        report.decisions.total() + report.repairs.total()
    )))
}

fn human(report: &VerifyReport, wall_s: f64) -> String {
    let mut text = String::new();
    let read = &report.read;
    let _ = writeln!(
        text,
        "{} runs, {} segments, {} lines, {} bytes; {} commands, {} pings",
        read.runs, read.segments, read.lines, read.bytes, report.commands, report.pings
    );
    let by = &report.windows;
    let _ = writeln!(
        text,
        "{} windows: {} batch, {} fallback, {} own",
        by.batch + by.fallback + by.own,
        by.batch,
        by.fallback,
        by.own
    );
    for (name, tally) in [
        ("decisions", &report.decisions),
        ("repairs", &report.repairs),
    ] {
        let Tally {
            identical,
            checked,
            different,
        } = tally;
        let _ = writeln!(
            text,
            "{name:9} {identical} identical, {checked} checked for validity, {different} different"
        );
    }
    missing(&mut text, report);
    for difference in &report.differences {
        let step = match difference.step {
            record::Step::Decision => "",
            record::Step::Repair => ", its repair",
        };
        let _ = writeln!(
            text,
            "DIFFERENT {}{step} ({}, block at {}): {}",
            difference.window,
            name(&difference.file),
            difference.offset,
            difference.detail
        );
    }
    let _ = writeln!(text, "{wall_s:.2} s");
    text
}

/// What is not in the record, and so was not verified.
fn missing(text: &mut String, report: &VerifyReport) {
    let read = &report.read;
    for tail in &read.torn {
        let _ = writeln!(
            text,
            "torn tail: {} ends in {} bytes that are no whole block",
            name(&tail.file),
            tail.bytes
        );
    }
    for missing in &read.missing {
        let _ = writeln!(
            text,
            "missing: {} blocks before {}",
            missing.blocks,
            name(&missing.file)
        );
    }
    if report.lost.total() > 0 {
        let lost = &report.lost;
        let _ = writeln!(
            text,
            "gaps: {} windows, {} commands and {} calls with pings were not recorded",
            lost.windows, lost.commands, lost.ping_calls
        );
    }
    if read.unended_runs > 0 {
        let _ = writeln!(
            text,
            "{} runs have no mark of their end: killed, or still running",
            read.unended_runs
        );
    }
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
