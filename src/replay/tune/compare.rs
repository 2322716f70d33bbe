//! The runs of a sweep, compared block by block.

use super::{
    interval::{DrawnFrom, holm_intervals, paired_estimates},
    report::{Comparison, Verdict},
    score::{BlockSums, RunScore},
};

/// Fewest blocks that say anything.
pub(super) const FEWEST_BLOCKS: usize = 12;
/// Chance that any interval of a family leaves out the truth.
pub(super) const ALPHA: f64 = 0.05;
/// Share of the reference's cost below which a difference is of no account.
pub(super) const OF_NO_ACCOUNT: f64 = 0.01;

/// The scores of every case under every seed, `[case][seed]`.
pub(super) struct Scores {
    pub(super) runs: Vec<Vec<RunScore>>,
    /// Where blocks are drawn from.
    pub(super) from: DrawnFrom,
    /// Seed of the resampling.
    pub(super) seed: u64,
}

/// Sums over seeds and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Totals {
    pub(super) requests: u64,
    pub(super) matched: u64,
    pub(super) gave_up: u64,
    pub(super) cost_s: f64,
    pub(super) eta_s: f64,
    pub(super) trip_km: f64,
}

impl Totals {
    fn add(&mut self, sums: &BlockSums) {
        self.requests += u64::from(sums.requests);
        self.matched += u64::from(sums.matched);
        self.gave_up += u64::from(sums.gave_up);
        self.cost_s += sums.cost_s;
        self.eta_s += sums.eta_s;
        self.trip_km += sums.trip_km;
    }

    /// Mean cost of a request.
    pub(super) fn rider_cost_s(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.cost_s / self.requests as f64)
    }

    /// Share of the requests that got a driver.
    pub(super) fn match_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.matched as f64 / self.requests as f64)
    }

    /// Seconds of driving to a pickup.
    pub(super) fn eta_per_trip_s(&self) -> Option<f64> {
        (self.matched > 0).then(|| self.eta_s / self.matched as f64)
    }
}

impl Scores {
    /// Totals of a case over some blocks.
    pub(super) fn totals(&self, case: usize, blocks: &[usize]) -> Totals {
        let mut totals = Totals::default();
        for run in &self.runs[case] {
            for &block in blocks {
                totals.add(&run.blocks[block]);
            }
        }
        totals
    }

    /// Those of `blocks` in which anybody asked.
    pub(super) fn asked_in(&self, blocks: impl Iterator<Item = usize>) -> Vec<usize> {
        let asked = |&block: &usize| {
            let runs = self.runs.first().into_iter().flatten();
            runs.clone().any(|run| run.blocks[block].requests > 0)
        };
        blocks.filter(asked).collect()
    }

    /// What each of `cases` differs from `reference`, over some blocks; one family.
    pub(super) fn compare(
        &self,
        reference: usize,
        cases: &[usize],
        blocks: &[usize],
    ) -> Vec<Comparison> {
        let cost_s = self.totals(reference, blocks).rider_cost_s();
        let others: Vec<usize> = cases.iter().copied().filter(|&c| c != reference).collect();
        let enough = blocks.len() >= FEWEST_BLOCKS;
        let intervals = if enough {
            self.intervals(reference, &others, blocks)
        } else {
            Vec::new()
        };
        let mut intervals = intervals.into_iter();
        cases
            .iter()
            .map(|&case| {
                let own = self.totals(case, blocks).rider_cost_s();
                let diff_s = own.zip(cost_s).map(|(own, reference)| own - reference);
                let interval_s = match (enough, case == reference) {
                    (false, _) => None,
                    (true, true) => Some([0.0, 0.0]),
                    (true, false) => intervals.next(),
                };
                Comparison {
                    diff_s,
                    interval_s,
                    seeds_better: self.seeds_better(reference, case, blocks),
                    verdict: verdict(interval_s, cost_s.unwrap_or(0.0)),
                }
            })
            .collect()
    }

    /// Seeds under which a case costs less than the reference.
    fn seeds_better(&self, reference: usize, case: usize, blocks: &[usize]) -> usize {
        let cost = |run: &RunScore| -> f64 { blocks.iter().map(|&b| run.blocks[b].cost_s).sum() };
        let pairs = self.runs[case].iter().zip(&self.runs[reference]);
        pairs
            .filter(|(own, theirs)| cost(own) < cost(theirs))
            .count()
    }

    fn intervals(&self, reference: usize, others: &[usize], blocks: &[usize]) -> Vec<[f64; 2]> {
        let theirs = &self.runs[reference];
        let requests: Vec<Vec<f64>> = theirs
            .iter()
            .map(|run| {
                blocks
                    .iter()
                    .map(|&b| run.blocks[b].requests.into())
                    .collect()
            })
            .collect();
        let sums: Vec<Vec<Vec<f64>>> = others
            .iter()
            .map(|&case| {
                let pairs = self.runs[case].iter().zip(theirs);
                let less = |(own, reference): (&RunScore, &RunScore)| {
                    let diff = |&b: &usize| own.blocks[b].cost_s - reference.blocks[b].cost_s;
                    blocks.iter().map(diff).collect()
                };
                pairs.map(less).collect()
            })
            .collect();
        holm_intervals(
            &paired_estimates(&requests, &sums, self.from, self.seed),
            ALPHA,
        )
    }
}

/// What an interval says, given the reference's cost.
fn verdict(interval_s: Option<[f64; 2]>, cost_s: f64) -> Verdict {
    let Some([low, high]) = interval_s else {
        return Verdict::NotEnoughData;
    };
    let little = OF_NO_ACCOUNT * cost_s;
    if high < 0.0 {
        Verdict::Better
    } else if low > 0.0 {
        Verdict::Worse
    } else if low >= -little && high <= little {
        Verdict::Equivalent
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_follows_from_the_interval() {
        let of = |low: f64, high: f64| verdict(Some([low, high]), 100.0);
        assert_eq!(of(-3.0, -0.1), Verdict::Better);
        assert_eq!(of(0.1, 3.0), Verdict::Worse);
        assert_eq!(of(-1.0, 1.0), Verdict::Equivalent);
        assert_eq!(of(0.0, 0.0), Verdict::Equivalent);
        assert_eq!(of(-1.1, 0.5), Verdict::Undecided);
        assert_eq!(of(-0.5, 1.1), Verdict::Undecided);
        assert_eq!(verdict(None, 100.0), Verdict::NotEnoughData);
    }
}
