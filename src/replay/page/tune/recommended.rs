//! What to set, in words.

use super::super::{
    figures::{short, whole, window},
    markup::{Element, of_text},
};
use crate::replay::tune::{Recommendation, TuneReport, Verdict, source_in_words};

/// The recommendations, a line for each fleet, each with its reason.
pub(super) fn recommended(report: &TuneReport) -> Vec<Element> {
    let mut elements: Vec<Element> = report
        .by_fleet
        .iter()
        .flat_map(|fleet| {
            let text = of_text("strong", setting_text(&fleet.recommended));
            let with = format!("With {} cars: ", whole(fleet.drivers as u64));
            [
                Element::new("p").class("lead").text(with).child(text),
                of_text("p", &fleet.recommended.reason).class("reason"),
            ]
        })
        .collect();
    elements.extend(
        report
            .notes
            .iter()
            .map(|note| of_text("p", note).class("note")),
    );
    elements
}

/// A recommended setting in words.
pub(super) fn setting_text(recommended: &Recommendation) -> String {
    format!(
        "window {}, longest pickup ETA {} s, age weight {}{}",
        window(recommended.window_ms),
        short(recommended.max_pickup_eta_s),
        short(recommended.age_weight),
        ahead_in_words(
            recommended.plan_ahead_ms,
            recommended.demand_ahead_ms,
            recommended.learned_demand
        ),
    )
}

/// How far is looked ahead, after other settings; nothing where it is not at all.
pub(super) fn ahead_in_words(plan_ms: i64, demand_ms: i64, learned: bool) -> String {
    let seconds = |ms: i64| short(ms as f64 / 1000.0);
    let source = source_in_words(learned);
    match (plan_ms, demand_ms) {
        (0, 0) => String::new(),
        (plan, 0) => format!(", plan {} s", seconds(plan)),
        (0, demand) => format!(", demand {} s{source}", seconds(demand)),
        (plan, demand) => format!(
            ", plan {} s, demand {} s{source}",
            seconds(plan),
            seconds(demand)
        ),
    }
}

/// A verdict as people say it.
pub(super) const fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "no difference",
        Verdict::Undecided => "undecided",
        Verdict::NotEnoughData => "not enough data",
    }
}
