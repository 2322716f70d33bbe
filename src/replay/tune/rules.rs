//! The swept rule beside the others, each at its own best setting.

use super::{
    cases::Case,
    compare::Scores,
    report::{RuleReport, SweepRow, Verdict},
};
use crate::replay::Policy;

/// Compares the swept rule of a fleet (`cases`, with their `rows`) with every other rule. A rule that
/// ran only some windows is compared over those, so that neither has more to choose from.
pub(super) fn compare_rules(
    scores: &Scores,
    all: &[Case],
    cases: &[usize],
    blocks: &[usize],
    rows: &[SweepRow],
) -> Vec<RuleReport> {
    let Some(swept) = cases.first().map(|&case| all[case].policy) else {
        return Vec::new();
    };
    let of = |policy: Policy| -> Vec<usize> {
        let mine = cases.iter().copied();
        mine.filter(|&case| all[case].policy == policy).collect()
    };
    let cost = |case: usize| {
        let cost_s = scores.totals(case, blocks).rider_cost_s();
        cost_s.unwrap_or(f64::INFINITY)
    };
    let best = |of: &[usize]| {
        let all = of.iter().copied();
        all.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
    };
    let row = |case: usize| {
        cases
            .iter()
            .position(|&c| c == case)
            .and_then(|at| rows.get(at))
    };
    let mut reports = Vec::new();
    for policy in Policy::ALL.into_iter().filter(|&policy| policy != swept) {
        let theirs = of(policy);
        let windows: Vec<_> = theirs.iter().map(|&c| all[c].config.window_ms).collect();
        let shared =
            |&case: &usize| !policy.has_windows() || windows.contains(&all[case].config.window_ms);
        let ours: Vec<usize> = of(swept).into_iter().filter(shared).collect();
        let (Some(rule), Some(ours)) = (best(&theirs), best(&ours)) else {
            continue;
        };
        let Some(&comparison) = scores.compare(rule, &[ours], blocks).first() else {
            continue;
        };
        let (Some(rule), Some(ours)) = (row(rule), row(ours)) else {
            continue;
        };
        reports.push(RuleReport {
            rule: rule.setting,
            rule_rider_cost_s: rule.rider_cost_s,
            ours: ours.setting,
            ours_rider_cost_s: ours.rider_cost_s,
            comparison,
            note: note(policy, swept, comparison.verdict),
        });
    }
    reports
}

fn note(policy: Policy, swept: Policy, verdict: Verdict) -> String {
    let what = match policy {
        Policy::Greedy => {
            "oldest request first: a weak rule, here because many dispatchers begin with it; \
             a gain on it says little"
        }
        Policy::GreedyNow => "no window at all: oldest first at every arrival and release",
        Policy::GreedyEdge => "cheapest pair first in the same windows: the baseline to beat",
        Policy::Batch => "each window as a whole",
    };
    let said = match verdict {
        Verdict::Better => format!("{swept} costs riders less"),
        Verdict::Worse => format!("{swept} costs riders more: think twice"),
        Verdict::Equivalent => "no difference".into(),
        Verdict::Undecided => "undecided".into(),
        Verdict::NotEnoughData => "not enough data".into(),
    };
    format!("{said}. {policy}: {what}.")
}
