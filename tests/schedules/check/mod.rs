//! What must hold after a schedule, over every operation of it.
//!
//! The region's own outbox is the order of things (INV-7: each event is written in the step that it
//! tells). It is booked from its first event on by the protocol's ledger; what callers were told and
//! what windows report must agree with it.

mod answers;
mod books;
mod evidence;
mod losses;
mod reports;

use std::time::Instant;

use crate::calls::Caller;

pub(crate) use evidence::Evidence;
pub(crate) use reports::sealed_in_time;

/// A new life of the store's data that the schedule brought about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    /// When the server was still as it was.
    pub(crate) began: Instant,
    /// When the server was there again. What was asked before may be lost, if anything was.
    pub(crate) over: Instant,
    /// Whether acknowledged writes were lost, or the server only began anew with all its data.
    pub(crate) of_writes: bool,
}

/// What a check found in a region.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Promises that were broken.
    pub(crate) broken: Vec<String>,
    /// What was looked at.
    pub(crate) tally: Tally,
}

impl Findings {
    fn hold(&mut self, holds: bool, told: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(told());
        }
    }
}

/// How much there was to check.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) events: usize,
    pub(crate) accepted: usize,
    pub(crate) claims: usize,
    pub(crate) confirmed: usize,
    pub(crate) own_claims: usize,
    pub(crate) windows: usize,
    pub(crate) fallbacks: usize,
    pub(crate) tries: usize,
    pub(crate) unknown: usize,
    pub(crate) refused: usize,
    pub(crate) generations: usize,
    pub(crate) lost: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.accepted += other.accepted;
        self.claims += other.claims;
        self.confirmed += other.confirmed;
        self.own_claims += other.own_claims;
        self.windows += other.windows;
        self.fallbacks += other.fallbacks;
        self.tries += other.tries;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.generations += other.generations;
        self.lost += other.lost;
    }
}

/// Checks a region.
pub(crate) fn check(evidence: &Evidence) -> Findings {
    let mut findings = Findings::default();
    let books = books::keep(evidence, &mut findings);
    reports::agree(evidence, &mut findings);
    answers::agree(evidence, &books, &mut findings);
    losses::are_declared(evidence, &mut findings);
    findings
}

/// INV-1 as the nodes count it.
pub(crate) async fn no_double_claims(caller: &Caller) -> Vec<String> {
    let mut broken = Vec::new();
    for node in 0..caller.nodes() {
        let Some(metrics) = caller.metrics(node).await else {
            broken.push(format!("n{node} tells no metrics"));
            continue;
        };
        for line in metrics.lines() {
            let counted = line.starts_with("kheya_double_claims_total");
            if counted && !line.ends_with(" 0") {
                broken.push(format!("INV-1: n{node}: {line}"));
            }
        }
    }
    broken
}
