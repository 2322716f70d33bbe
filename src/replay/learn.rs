//! The answer of `kheya replay --learn`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    input::InputReport,
    report::{rounded_json, write_input},
};
use crate::demand::DemandCounts;

/// What was learned, and where it stands.
#[derive(Debug, Clone, Serialize)]
pub struct LearnReport {
    /// What was read.
    pub input: InputReport,
    /// The model file.
    pub file: PathBuf,
    /// Requests that it counts.
    pub requests: u64,
    /// H3 cells with a request.
    pub cells: usize,
    /// Hours that were watched.
    pub watched_h: f64,
    /// Share of the week's quarters of an hour that were watched, in whole or in part. The others
    /// are taken from those like them.
    pub week_share: f64,
}

impl LearnReport {
    /// The account of counts that were written to `file`.
    pub fn new(input: InputReport, counts: &DemandCounts, file: PathBuf) -> Self {
        Self {
            input,
            file,
            requests: counts.requests(),
            cells: counts.cells(),
            watched_h: counts.watched().as_seconds() / 3600.0,
            week_share: counts.week_share(),
        }
    }

    /// As JSON, numbers rounded to four decimals.
    ///
    /// # Errors
    /// Those of the JSON writer.
    pub fn json(&self) -> serde_json::Result<String> {
        rounded_json(self)
    }

    /// The figures for people.
    pub fn human(&self) -> String {
        let mut text = String::new();
        write_input(&mut text, &self.input);
        let _ = writeln!(
            text,
            "\nlearned from {} requests in {:.1} hours, {:.0} % of the week's quarters of an hour,\n\
             in {} cells; written to {}",
            self.requests,
            self.watched_h,
            100.0 * self.week_share,
            self.cells,
            Path::display(&self.file),
        );
        text
    }
}
