//! The swept rule against the others.

use super::{
    super::{
        charts::{Column, Difference, Figure, Style, Table, figure, intervals},
        figures::{seconds, whole},
        markup::Element,
    },
    by_setting::{comparison_cells, in_words},
    recommended::verdict_text,
};
use crate::replay::{
    Policy,
    tune::{RuleReport, TuneReport},
};

/// Differences of the swept rule to each other; nothing where it ran alone.
pub(super) fn by_rule(report: &TuneReport) -> Option<Element> {
    let several = report.by_fleet.len() > 1;
    let name = |rule: &RuleReport| {
        let against = format!("{} against {}", rule.ours.policy, rule.rule.policy);
        if several {
            format!("{against}, {} cars", whole(rule.rule.drivers as u64))
        } else {
            against
        }
    };
    let differences: Vec<Difference> = report
        .rules
        .iter()
        .filter_map(|rule| {
            let policy: Policy = rule.rule.policy.parse().ok()?;
            Some(Difference {
                name: format!("{}: {}", name(rule), verdict_text(rule.comparison.verdict)),
                value: rule.comparison.diff_s?,
                interval: rule.comparison.interval_s,
                style: Style::of_policy(policy),
            })
        })
        .collect();
    if differences.is_empty() {
        return None;
    }
    let rows = report.rules.iter().map(|rule| {
        let mut row = vec![
            name(rule),
            in_words(&rule.ours),
            seconds(rule.ours_rider_cost_s),
            in_words(&rule.rule),
            seconds(rule.rule_rider_cost_s),
        ];
        row.extend(comparison_cells(&rule.comparison));
        row.push(rule.note.clone());
        row
    });
    let table = Table {
        columns: vec![
            Column::text("Rules"),
            Column::text("Ours at its best"),
            Column::figure("Rider cost"),
            Column::text("Theirs at its best"),
            Column::figure("Rider cost"),
            Column::figure("Difference"),
            Column::figure("95 % interval"),
            Column::text("Verdict"),
            Column::text("What it is"),
        ],
        rows: rows.collect(),
    };
    Some(figure(Figure {
        id: "rules-compared".into(),
        title: "Against the other rules".into(),
        says: "Rider cost of the swept rule less that of the other, each at its own best among the windows both ran. greedy-edge is the strongest simple rule; greedy is oldest-first, a weak baseline.".into(),
        key: None,
        // rules differ by orders of magnitude: each has a scale of its own
        drawings: differences
            .iter()
            .map(|one| {
                intervals(
                    &format!("Difference of rider cost, {}", one.name),
                    "Left of zero the swept rule is better.",
                    "seconds a request; left of 0 is better",
                    std::slice::from_ref(one),
                )
            })
            .collect(),
        table,
    }))
}
