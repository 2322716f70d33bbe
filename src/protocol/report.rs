//! The seal: a window ends exactly once, with a report that says how (INV-4, INV-8).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    due::DueKey,
    mutation::Mutation,
    region::Region,
    rules::{KEPT_DECISIONS, KEPT_REPORTS, MAX_DECISIONS_BYTES},
    window::{Holder, Owner, WindowRefusal},
};
use crate::domain::{
    ConfigVersion, DurationMs, Epoch, Finite, Generation, StoreTime, UnixMs, WindowSeq,
};

/// How a window was decided.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ReportSource {
    /// Solved as a whole.
    Batch,
    /// By the greedy fallback.
    Fallback,
    /// Not at all; its requests carry over.
    #[default]
    None,
}

/// What the decider tells of a window. Times in milliseconds, sums in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ReportBody {
    /// How it was decided.
    pub source: ReportSource,
    /// Why it was not a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
    /// Requests of the snapshot.
    pub requests: u32,
    /// Requests beyond the snapshot.
    pub deferred: u32,
    /// Drivers that could be chosen.
    pub drivers: u32,
    /// Candidate pairs.
    pub edges: u32,
    /// Requests left over, by reason.
    pub unmatched: BTreeMap<Arc<str>, u32>,
    /// Drivers left out, by reason.
    pub excluded: BTreeMap<Arc<str>, u32>,
    /// How far the solver came.
    pub status: Option<Arc<str>>,
    /// How it solved.
    pub method: Option<Arc<str>>,
    /// Relative distance to the bound.
    pub gap: Option<Finite>,
    /// Time for the candidate graph.
    pub build_ms: Finite,
    /// Time for the travel times.
    pub eta_ms: Finite,
    /// Time to solve.
    pub solve_ms: Finite,
    /// Time to verify.
    pub verify_ms: Finite,
    /// Time to claim.
    pub claim_ms: Finite,
    /// Sum of the travel times of what was assigned.
    pub total_eta_s: Finite,
    /// What oldest-first greedy would have cost more.
    pub gain_vs_greedy_s: Option<Finite>,
    /// What greedy by edges would have cost more.
    pub gain_vs_greedy_edge_s: Option<Finite>,
    /// Pairs lost at the claim.
    pub claim_lost: u32,
    /// Hash of the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_hash: Option<Arc<str>>,
    /// Longest time since a window first planned one of the planned requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_age_s: Option<Finite>,
}

impl ReportBody {
    /// Of a window that nobody came to decide.
    pub fn undecided() -> Self {
        Self {
            source: ReportSource::None,
            cause: Some("no_decider".into()),
            ..Self::default()
        }
    }
}

/// The report of a sealed window: what the store knows, and what the decider told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowReport {
    /// The window.
    pub window_seq: WindowSeq,
    /// The grid's step when it opened.
    pub window_ms: DurationMs,
    /// The configuration when it opened.
    pub config_version: ConfigVersion,
    /// The life of the data in which it was sealed.
    pub generation: Generation,
    /// The leadership under which it was sealed.
    pub epoch: Epoch,
    /// When it opened.
    pub opened_at_ms: UnixMs,
    /// When it closed.
    pub closed_at_ms: UnixMs,
    /// When it was sealed.
    pub sealed_at_ms: UnixMs,
    /// Pairs claimed for it, whoever owned it.
    pub assigned: u32,
    /// What the decider told.
    #[serde(flatten)]
    pub body: ReportBody,
}

/// Ends a window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seal {
    /// The window.
    pub window_seq: WindowSeq,
    /// Its owner.
    pub owner: Owner,
    /// What the owner tells.
    pub body: ReportBody,
    /// Every decision of the window, a JSON document; kept for the last [`KEPT_DECISIONS`] windows
    /// and dropped when over [`MAX_DECISIONS_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Arc<str>>,
}

/// A sealed window as the region keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SealedWindow {
    /// Its report.
    pub report: Arc<WindowReport>,
    /// Who sealed it; nobody when the region did itself.
    pub owner: Option<Owner>,
    /// Its decisions, while kept.
    pub decisions: Option<Arc<str>>,
}

/// The last sealed windows, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reports(VecDeque<SealedWindow>);

impl Reports {
    /// The sealed window of a number, while kept.
    pub fn get(&self, seq: WindowSeq) -> Option<&SealedWindow> {
        // sealed in order and without gaps, so the place is known
        let first = self.0.front()?.report.window_seq.get();
        let place = usize::try_from(seq.get().checked_sub(first)?).ok()?;
        self.0.get(place)
    }

    /// The sealed windows after a number, oldest first.
    pub fn after(&self, seq: WindowSeq) -> impl Iterator<Item = &SealedWindow> {
        let first = self.0.front().map_or(1, |w| w.report.window_seq.get());
        let skip = (seq.get() + 1)
            .saturating_sub(first)
            .min(self.0.len() as u64) as usize;
        self.0.range(skip..)
    }

    /// The last one.
    pub fn last(&self) -> Option<&SealedWindow> {
        self.0.back()
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, sealed: SealedWindow) {
        if self.0.len() >= KEPT_REPORTS {
            self.0.pop_front();
        }
        self.0.push_back(sealed);
        if let Some(place) = self.0.len().checked_sub(KEPT_DECISIONS + 1)
            && let Some(old) = self.0.get_mut(place)
        {
            old.decisions = None;
        }
    }
}

impl Region {
    /// Ends a window; a repeat by the same owner gets the first report.
    pub(crate) fn seal(
        &mut self,
        seal: Seal,
        now: StoreTime,
    ) -> Result<Arc<WindowReport>, WindowRefusal> {
        if let Some(sealed) = self.reports.get(seal.window_seq)
            && !self.has(Mutation::SealTwice)
        {
            return if sealed.owner == Some(seal.owner) {
                Ok(Arc::clone(&sealed.report))
            } else {
                Err(WindowRefusal::WindowLost)
            };
        }
        if self.has(Mutation::SealTwice) && self.reports.get(seal.window_seq).is_some() {
            let body = seal.body;
            let report = self.report(seal.window_seq, Some(seal.owner), body, now);
            return Ok(Arc::new(report));
        }
        self.owned(seal.window_seq, seal.owner, now)?;
        let decisions = seal
            .decisions
            .filter(|text| text.len() <= MAX_DECISIONS_BYTES);
        let report = self.write_seal(seal.window_seq, Some(seal.owner), seal.body, decisions, now);
        self.reopen(now);
        Ok(report)
    }

    /// Writes the seal. What is left pending belongs to the next window by itself.
    pub(crate) fn write_seal(
        &mut self,
        seq: WindowSeq,
        owner: Option<Owner>,
        body: ReportBody,
        decisions: Option<Arc<str>>,
        now: StoreTime,
    ) -> Arc<WindowReport> {
        let report = Arc::new(self.report(seq, owner, body, now));
        self.windows.remove(&seq);
        self.due.remove(&DueKey::WindowClose(seq));
        self.reports.push(SealedWindow {
            report: Arc::clone(&report),
            owner,
            decisions,
        });
        report
    }

    fn report(
        &self,
        seq: WindowSeq,
        owner: Option<Owner>,
        body: ReportBody,
        now: StoreTime,
    ) -> WindowReport {
        let window = self.windows.get(&seq);
        WindowReport {
            window_seq: seq,
            window_ms: window.map_or(self.rules.window_ms, |w| w.window_ms),
            config_version: window.map_or(self.config_version, |w| w.config_version),
            generation: self.generation,
            epoch: match owner.map(|owner| owner.holder) {
                Some(Holder::Leader { epoch, .. }) => epoch,
                _ => self.leadership.epoch,
            },
            opened_at_ms: window.map_or(now.ms(), |w| w.opened_at_ms),
            closed_at_ms: window.map_or(now.ms(), |w| w.closes_at_ms),
            sealed_at_ms: now.ms(),
            assigned: window.map_or(0, |w| w.claimed),
            body,
        }
    }
}
