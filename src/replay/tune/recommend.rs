//! What to set, and why, in words.

use std::fmt::Write as _;

use super::{
    compare::{FEWEST_BLOCKS, OF_NO_ACCOUNT},
    report::{Comparison, Recommendation, Setting, Verdict, source_in_words},
};

/// Share of empty driving that is worth a word.
const WORTH_A_WORD: f64 = 0.02;

/// A setting as the choice sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) setting: Setting,
    pub(super) reference: bool,
    pub(super) rider_cost_s: Option<f64>,
    pub(super) comparison: Comparison,
    /// Seconds of driving to a pickup: empty kilometres by another name.
    pub(super) eta_per_trip_s: Option<f64>,
}

/// What is said of a setting: only the axes that were swept.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "one for each axis")]
pub(super) struct Words {
    pub(super) seeds: usize,
    /// The shortest and the longest window tried.
    pub(super) window_ends_ms: [i64; 2],
    pub(super) windows: bool,
    pub(super) caps: bool,
    pub(super) weights: bool,
    pub(super) plans: bool,
    pub(super) demands: bool,
}

/// Chooses among settings of one rule and fleet.
pub(super) fn recommend(
    choices: &[Choice],
    blocks: usize,
    block_min: i64,
    words: Words,
) -> Recommendation {
    let Some(reference) = choices.iter().find(|c| c.reference).or(choices.first()) else {
        // a sweep has a reference; without one there is nothing to say
        return Recommendation {
            window_ms: 0,
            max_pickup_eta_s: 0.0,
            age_weight: 0.0,
            plan_ahead_ms: 0,
            demand_ahead_ms: 0,
            learned_demand: false,
            change: false,
            reason: "nothing was swept".into(),
        };
    };
    let own = words.name(&reference.setting);
    if blocks < FEWEST_BLOCKS {
        return settle(
            reference,
            false,
            format!(
                "Not enough data: {blocks} blocks of {block_min} minutes with requests, \
                 {FEWEST_BLOCKS} are needed. {own} is kept."
            ),
        );
    }
    if choices.len() == 1 {
        return settle(reference, false, format!("{own} is all that was tried."));
    }
    let best = best_of_better(choices);
    let cost_s = reference.rider_cost_s.unwrap_or(0.0);
    let (chosen, change, mut reason) = match best {
        Some(best) if of_account(&best.comparison, cost_s) => {
            (best, true, better(best, &own, cost_s, words))
        }
        Some(best) => {
            let reason = format!(
                "No difference of account: the best, {}, saves riders {}, which is under 1 %. \
                 {own} is kept.",
                words.name(&best.setting),
                amount(&best.comparison, cost_s),
            );
            (reference, false, reason)
        }
        None => (
            reference,
            false,
            nothing_better(choices, &own, cost_s, words),
        ),
    };
    reason.push_str(&less_driving(chosen, choices, cost_s, words));
    settle(chosen, change, reason)
}

fn settle(chosen: &Choice, change: bool, reason: String) -> Recommendation {
    Recommendation {
        window_ms: chosen.setting.window_ms,
        max_pickup_eta_s: chosen.setting.max_pickup_eta_s,
        age_weight: chosen.setting.age_weight,
        plan_ahead_ms: chosen.setting.plan_ahead_ms,
        demand_ahead_ms: chosen.setting.demand_ahead_ms,
        learned_demand: chosen.setting.learned_demand,
        change,
        reason,
    }
}

/// The cheapest of those that are surely better.
fn best_of_better(choices: &[Choice]) -> Option<&Choice> {
    choices
        .iter()
        .filter(|c| c.comparison.verdict == Verdict::Better)
        .min_by(|a, b| {
            let cost = |c: &Choice| c.rider_cost_s.unwrap_or(f64::INFINITY);
            cost(a).total_cmp(&cost(b))
        })
}

/// Whether a difference may matter: its interval reaches beyond 1 % of the reference's cost.
fn of_account(comparison: &Comparison, cost_s: f64) -> bool {
    comparison
        .interval_s
        .is_some_and(|[low, high]| low.abs().max(high.abs()) > OF_NO_ACCOUNT * cost_s)
}

fn better(best: &Choice, own: &str, cost_s: f64, words: Words) -> String {
    format!(
        "{}: it saves riders {} against {own}.{}",
        words.name(&best.setting),
        amount(&best.comparison, cost_s),
        words.beyond(best.setting.window_ms),
    )
}

/// A saving with its share and interval.
fn amount(comparison: &Comparison, cost_s: f64) -> String {
    let saved = -comparison.diff_s.unwrap_or(0.0);
    let share = if cost_s > 0.0 {
        100.0 * saved / cost_s
    } else {
        0.0
    };
    let [low, high] = comparison.interval_s.unwrap_or_default();
    format!(
        "{} s each ({share:.1} %; 95 % interval {} to {} s)",
        figure(saved),
        figure(-high),
        figure(-low)
    )
}

/// Of the undecided ones, that which would be the best if the figures were sure.
fn looks_best(choices: &[Choice], cost_s: f64, words: Words) -> String {
    let open = choices.iter().filter(|c| {
        c.comparison.verdict == Verdict::Undecided && c.comparison.diff_s.is_some_and(|d| d < 0.0)
    });
    let best = open.min_by(|a, b| {
        let diff = |c: &Choice| c.comparison.diff_s.unwrap_or(0.0);
        diff(a).total_cmp(&diff(b))
    });
    best.map_or_else(String::new, |best| {
        format!(
            " {} looks best: it saves riders {}, under {} of {} seeds. A longer recording may \
             tell.{}",
            words.name(&best.setting),
            amount(&best.comparison, cost_s),
            best.comparison.seeds_better,
            words.seeds,
            words.beyond(best.setting.window_ms),
        )
    })
}

fn nothing_better(choices: &[Choice], own: &str, cost_s: f64, words: Words) -> String {
    let named = |verdict: Verdict| -> Vec<String> {
        choices
            .iter()
            .filter(|c| !c.reference && c.comparison.verdict == verdict)
            .map(|c| words.name(&c.setting))
            .collect()
    };
    let (equal, open, worse) = (
        named(Verdict::Equivalent),
        named(Verdict::Undecided),
        named(Verdict::Worse),
    );
    let mut reason = match (equal.is_empty(), open.is_empty(), worse.is_empty()) {
        (_, true, true) => format!("No difference: all lie within 1 % of {own}, which is kept."),
        (_, true, false) => format!("{own}: nothing is better."),
        _ => format!("{own} is kept: nothing is shown to be better."),
    };
    if !open.is_empty() {
        let _ = write!(reason, " Undecided: {}.", list(&open));
        reason.push_str(&looks_best(choices, cost_s, words));
    }
    if !worse.is_empty() {
        let _ = write!(reason, " Worse: {}.", list(&worse));
    }
    let all_equal = open.is_empty() && worse.is_empty();
    if !equal.is_empty() && !all_equal {
        let _ = write!(reason, " Within 1 %: {}.", list(&equal));
    }
    reason
}

/// A setting that costs riders under 1 % more than the chosen one and drives clearly less empty.
fn less_driving(chosen: &Choice, choices: &[Choice], cost_s: f64, words: Words) -> String {
    let Some(own_eta) = chosen.eta_per_trip_s.filter(|eta| *eta > 0.0) else {
        return String::new();
    };
    let chosen_cost = chosen.rider_cost_s.unwrap_or(0.0);
    let near = |c: &&Choice| {
        let cost = c.rider_cost_s.unwrap_or(f64::INFINITY);
        cost - chosen_cost <= OF_NO_ACCOUNT * cost_s && c.setting != chosen.setting
    };
    let least = choices.iter().filter(near).min_by(|a, b| {
        let eta = |c: &Choice| c.eta_per_trip_s.unwrap_or(f64::INFINITY);
        eta(a).total_cmp(&eta(b))
    });
    match least.and_then(|c| Some((c, 1.0 - c.eta_per_trip_s? / own_eta))) {
        Some((c, saved)) if saved >= WORTH_A_WORD => format!(
            " Where empty driving counts: {} drives {:.1} % less to each pickup, and costs riders at \
             most 1 % more, as measured.",
            words.name(&c.setting),
            100.0 * saved
        ),
        _ => String::new(),
    }
}

fn list(names: &[String]) -> String {
    const MOST: usize = 6;
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Seconds with as many decimals as say something.
fn figure(s: f64) -> String {
    if s.abs() < 0.005 {
        "0".into()
    } else if s.abs() < 9.95 {
        format!("{s:.2}")
    } else {
        format!("{s:.1}")
    }
}

impl Words {
    /// That the best window lies at an end of those tried.
    fn beyond(self, window_ms: i64) -> &'static str {
        match self.window_ends_ms {
            _ if !self.windows => "",
            [_, longest] if window_ms == longest => " It is the longest tried: try longer ones.",
            [shortest, _] if window_ms == shortest => " It is the shortest tried.",
            _ => "",
        }
    }

    /// A setting by the axes that were swept; its window, if none was.
    pub(super) fn name(self, setting: &Setting) -> String {
        let mut parts = Vec::new();
        let windowless = setting.window_ms == 0;
        let others = self.caps || self.weights || self.plans || self.demands;
        if !windowless && (self.windows || !others) {
            parts.push(format!("{} s", setting.window_ms as f64 / 1000.0));
        }
        if self.caps || windowless {
            parts.push(format!("cap {} s", setting.max_pickup_eta_s));
        }
        if self.weights {
            parts.push(format!("age weight {}", setting.age_weight));
        }
        let seconds = |ms: i64| ms as f64 / 1000.0;
        if self.plans {
            parts.push(format!("plan {} s", seconds(setting.plan_ahead_ms)));
        }
        if self.demands || setting.learned_demand {
            let demand_s = seconds(setting.demand_ahead_ms);
            let source = source_in_words(setting.learned_demand);
            parts.push(format!("demand {demand_s} s{source}"));
        }
        parts.join(" / ")
    }
}
