//! What a replay says, in words, with every gain beside its baseline.

use std::fmt::Write as _;

use super::{
    figures::{percent, seconds, short},
    markup::{Element, of_text},
};
use crate::replay::{Gain, Policy, ReplayReport};

/// Differences of rider cost below this many per cent are called none: `kheya tune` calls settings
/// equivalent within the same band.
const NO_DIFFERENCE_PCT: f64 = 1.0;

/// The headline figures as a list of sentences.
pub(super) fn headline(report: &ReplayReport) -> Vec<Element> {
    let Some(first) = report.runs.first() else {
        return Vec::new();
    };
    let mut elements = vec![
        of_text(
            "p",
            format_args!(
                "{} served {} of the riders. Rider cost, the mean wait with every lost rider counted as the longest wait and pickup, is {}.",
                capital(first.policy),
                percent(first.match_rate),
                seconds(first.rider_cost_s)
            ),
        )
        .class("lead"),
    ];
    if let Some(ahead) = report.runs.iter().find_map(|kpis| kpis.ahead.as_ref()) {
        let text = format!(
            "Batch decides {}: its figures and what it gains are those of that, the other rules do not look ahead. {}.",
            ahead.in_words(),
            ahead.wait_in_words()
        );
        elements.push(of_text("p", text).class("note"));
    }
    if first.requests == 0 {
        return elements;
    }
    if let Some(bound) = &report.bound {
        elements.push(of_text("p", bound.in_words()).class("note"));
    }
    if first.policy != Policy::Batch.name() || report.runs.len() == 1 {
        elements.push(of_text(
            "p",
            "One rule alone says little: --policy all puts the others beside it.",
        ));
        return elements;
    }
    // a gain over oldest-first greedy alone would say more than it is worth
    if !report.gain_vs.contains_key(Policy::GreedyEdge.name()) {
        elements.push(of_text(
            "p",
            "What batch gains is told beside greedy-edge, the strongest of the simple rules: --policy all.",
        ));
        return elements;
    }
    let mut list = Element::new("ul").class("against");
    for policy in Policy::ALL {
        if let Some(gain) = report.gain_vs.get(policy.name()) {
            list = list.child(
                Element::new("li")
                    .child(of_text("strong", format_args!("Against {policy}")))
                    .text(format_args!(" ({}): ", baseline(policy)))
                    .text(verdict(gain)),
            );
        }
    }
    elements.push(list);
    elements.push(
        of_text(
            "p",
            "One replay under one seed has no interval: a difference of about a per cent may turn round under the next seed. kheya tune says how sure a difference is.",
        )
        .class("note"),
    );
    elements
}

/// What a baseline is, so that nobody takes a weak one for a strong one.
fn baseline(policy: Policy) -> &'static str {
    match policy {
        Policy::Batch => "each window as a whole",
        Policy::GreedyEdge => "the same windows, cheapest pair first: the strongest simple rule",
        Policy::Greedy => {
            "the same windows, oldest request first: the fallback, and a weak baseline"
        }
        Policy::GreedyNow => "no window, oldest request first at every arrival and release",
    }
}

fn verdict(gain: &Gain) -> String {
    let Some(cost_pct) = gain.rider_cost_pct else {
        return "nothing to compare.".into();
    };
    let mut text = if cost_pct.abs() < NO_DIFFERENCE_PCT {
        format!(
            "practically no difference; batch’s rider cost is {} % {}",
            short(cost_pct.abs()),
            if cost_pct < 0.0 { "higher" } else { "lower" },
        )
    } else if cost_pct > 0.0 {
        format!(
            "batch is better; its rider cost is {} % lower",
            short(cost_pct)
        )
    } else {
        format!(
            "batch is worse; its rider cost is {} % higher",
            short(-cost_pct)
        )
    };
    if let Some(points) = gain.match_rate_pts {
        let _ = write!(
            text,
            ", it serves {} points {}",
            short(points.abs()),
            if points < 0.0 { "fewer" } else { "more" }
        );
    }
    if let Some(empty_pct) = gain.empty_km_per_trip_pct {
        let _ = write!(
            text,
            " and drives {} % {} empty km a trip",
            short(empty_pct.abs()),
            if empty_pct < 0.0 { "more" } else { "less" }
        );
    }
    text.push('.');
    text
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(rider_cost_pct: f64) -> Gain {
        Gain {
            rider_cost_pct: Some(rider_cost_pct),
            pickup_eta_mean_pct: None,
            match_rate_pts: Some(0.2),
            empty_km_per_trip_pct: Some(-1.5),
        }
    }

    #[test]
    fn a_small_difference_is_called_none_and_a_loss_a_loss() {
        assert!(
            verdict(&gain(0.3))
                .starts_with("practically no difference; batch’s rider cost is 0.3 % lower")
        );
        assert!(verdict(&gain(-0.3)).contains("0.3 % higher"));
        assert!(verdict(&gain(-2.3)).starts_with("batch is worse; its rider cost is 2.3 % higher"));
        assert_eq!(
            verdict(&gain(32.0)),
            "batch is better; its rider cost is 32 % lower, it serves 0.2 points more and drives 1.5 % more empty km a trip."
        );
    }
}
