//! Verifying a log: every recorded window decided again by the same functions.
//!
//! A window is **identical** when pairs, bits of ETAs and costs, reasons, exclusions, counts and the
//! solver's account are those recorded. One that a wall-clock budget cut (`feasible`) cannot be
//! decided the same again and is **checked** for validity instead, see [`super::validity`]: so are
//! the repairs of such windows, and those of fallbacks.

use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::{
    entry::{Entry, Gap, Lost, RecordedWindow, WindowSource},
    reader::{LogError, LogReader, Position, ReadAccount},
    recompute::{Verdict, recompute},
};
use crate::domain::{RegionId, UnixMs, WindowId, WindowSeq};

/// Windows decided at a time, spread over the cores.
const AT_A_TIME: usize = 64;

/// Differences that are told one by one.
const TOLD: usize = 20;

/// How many windows came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// The same bit for bit.
    pub identical: u64,
    /// Valid, where the same bits cannot be asked for.
    pub checked: u64,
    /// Neither.
    pub different: u64,
}

impl Tally {
    const fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Identical => self.identical += 1,
            Verdict::Valid => self.checked += 1,
            Verdict::Different(_) => self.different += 1,
        }
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.identical + self.checked + self.different
    }
}

/// The part of a window that came out otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// What was decided first.
    Decision,
    /// What was decided after claims were lost.
    Repair,
}

/// A window that came out otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The segment.
    pub file: PathBuf,
    /// Where the window's block begins.
    pub offset: u64,
    /// The region.
    pub region: RegionId,
    /// The number of the region's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_seq: Option<WindowSeq>,
    /// The caller's name of an own window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_id: Option<WindowId>,
    /// The window's name for people.
    #[serde(skip)]
    pub window: String,
    /// When it was decided.
    pub at_ms: UnixMs,
    /// How it was decided.
    pub source: WindowSource,
    /// Which part of it.
    pub step: Step,
    /// The first difference, in words.
    pub detail: String,
}

/// Windows by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BySource {
    /// Batch windows.
    pub batch: u64,
    /// Fallback windows.
    pub fallback: u64,
    /// Own windows.
    pub own: u64,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct VerifyReport {
    /// What was read.
    pub read: ReadAccount,
    /// Commands recorded, without pings.
    pub commands: u64,
    /// Pings taken in, before they were brought down to the newest.
    pub pings: u64,
    /// Windows recorded.
    pub windows: BySource,
    /// Their first decisions.
    pub decisions: Tally,
    /// Their repairs.
    pub repairs: Tally,
    /// The first of the windows that came out otherwise.
    pub differences: Vec<Difference>,
    /// Gaps in the log, the first of them.
    pub gaps: Vec<Gap>,
    /// What is missing in all gaps.
    pub lost: Lost,
}

impl VerifyReport {
    /// Whether nothing came out otherwise.
    pub const fn holds(&self) -> bool {
        self.decisions.different + self.repairs.different == 0
    }
}

/// Decides every window of the logs again. `progress` hears the bytes read and those of all logs.
///
/// # Errors
/// A log cannot be read: see [`LogError`].
pub fn verify(
    paths: &[PathBuf],
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<VerifyReport, LogError> {
    let mut reader = LogReader::open(paths)?;
    let mut report = VerifyReport::default();
    let mut waiting: Vec<(Position, Box<RecordedWindow>)> = Vec::with_capacity(AT_A_TIME);
    while let Some(entry) = reader.next() {
        match entry? {
            Entry::Header(_) => progress(reader.account().bytes, reader.total_bytes()),
            Entry::End(_) => {}
            Entry::Command(_) => report.commands += 1,
            Entry::Supply(supply) => {
                let refused: u64 = supply.rejected.values().sum();
                report.pings += supply.accepted + supply.stale + refused;
            }
            Entry::Gap(gap) => {
                report.lost.add(gap.lost);
                if report.gaps.len() < TOLD {
                    report.gaps.push(gap);
                }
            }
            Entry::Window(window) => {
                waiting.push((reader.position().clone(), window));
                if waiting.len() == AT_A_TIME {
                    decide_again(&mut waiting, &mut report);
                }
            }
        }
    }
    decide_again(&mut waiting, &mut report);
    progress(reader.total_bytes(), reader.total_bytes());
    report.read = reader.account().clone();
    Ok(report)
}

fn decide_again(waiting: &mut Vec<(Position, Box<RecordedWindow>)>, report: &mut VerifyReport) {
    let verdicts: Vec<(Verdict, Option<Verdict>)> = waiting
        .par_iter()
        .map(|(_, window)| recompute(window))
        .collect();
    for ((position, window), (decision, repair)) in waiting.drain(..).zip(verdicts) {
        match window.source {
            WindowSource::Batch => report.windows.batch += 1,
            WindowSource::Fallback => report.windows.fallback += 1,
            WindowSource::Own => report.windows.own += 1,
        }
        report.decisions.count(&decision);
        report.tell(&position, &window, Step::Decision, decision);
        if let Some(repair) = repair {
            report.repairs.count(&repair);
            report.tell(&position, &window, Step::Repair, repair);
        }
    }
}

impl VerifyReport {
    fn tell(&mut self, at: &Position, window: &RecordedWindow, step: Step, verdict: Verdict) {
        let Verdict::Different(detail) = verdict else {
            return;
        };
        if self.differences.len() == TOLD {
            return;
        }
        self.differences.push(Difference {
            file: at.file.clone(),
            offset: at.offset,
            region: window.region.clone(),
            window_seq: window.window_seq,
            window_id: window.window_id.clone(),
            window: window.name(),
            at_ms: window.snapshot.now(),
            source: window.source,
            step,
            detail,
        });
    }
}
