//! A replay's figures, as JSON and for people.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;

use super::{Bound, Gain, Kpis, Policy, Spread, input::InputReport, wrapped::wrapped};

/// The whole answer of `kheya replay`.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayReport {
    /// What was read.
    pub input: InputReport,
    /// One entry a policy.
    pub runs: Vec<Kpis>,
    /// What batch gained on each other policy that ran; empty without batch.
    pub gain_vs: BTreeMap<&'static str, Gain>,
    /// What no rule can be better than, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Seconds from the start of reading to the end of the last run.
    pub wall_s: f64,
    /// Requests decided a second, all runs together.
    pub trips_per_s: f64,
}

impl ReplayReport {
    /// Puts the parts together.
    pub fn new(input: InputReport, runs: Vec<Kpis>, wall_s: f64) -> Self {
        let mut gain_vs = BTreeMap::new();
        if let Some(batch) = runs.iter().find(|kpis| kpis.is_of(Policy::Batch)) {
            for baseline in runs.iter().filter(|kpis| !kpis.is_of(Policy::Batch)) {
                gain_vs.insert(baseline.policy, batch.gain_on(baseline));
            }
        }
        let decided: usize = runs.iter().map(|kpis| kpis.requests).sum();
        let trips_per_s = if wall_s > 0.0 {
            decided as f64 / wall_s
        } else {
            0.0
        };
        Self {
            input,
            runs,
            gain_vs,
            bound: None,
            wall_s,
            trips_per_s,
        }
    }

    /// The same with a bound beside its runs.
    #[must_use]
    pub fn with_bound(mut self, bound: Option<Bound>) -> Self {
        self.bound = bound.map(|bound| bound.beside(&self.runs));
        self
    }

    /// As JSON, numbers rounded to four decimals.
    ///
    /// # Errors
    /// Those of the JSON writer.
    pub fn json(&self) -> serde_json::Result<String> {
        rounded_json(self)
    }
}

/// An answer as JSON, numbers rounded to four decimals.
pub(super) fn rounded_json(answer: &impl Serialize) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(answer)?;
    round_numbers(&mut value);
    serde_json::to_string_pretty(&value)
}

fn round_numbers(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(list) => list.iter_mut().for_each(round_numbers),
        serde_json::Value::Object(map) => map.values_mut().for_each(round_numbers),
        serde_json::Value::Number(number) if number.is_f64() => {
            if let Some(n) = number.as_f64() {
                *value = ((n * 1e4).round() / 1e4).into();
            }
        }
        _ => {}
    }
}

/// The figures as a table for people.
pub fn human(report: &ReplayReport) -> String {
    let mut text = String::new();
    write_input(&mut text, &report.input);
    write_runs(&mut text, &report.runs);
    write_gains(&mut text, report);
    if let Some(bound) = &report.bound {
        let _ = writeln!(text, "\n{}", wrapped(&bound.in_words(), 0));
    }
    let _ = writeln!(
        text,
        "\n{:.1} s in all, {:.0} requests decided a second",
        report.wall_s, report.trips_per_s
    );
    text
}

fn write_runs(text: &mut String, runs: &[Kpis]) {
    let Some(first) = runs.first() else { return };
    let _ = writeln!(
        text,
        "\n{} requests, {} drivers",
        first.requests, first.drivers
    );
    let _ = writeln!(
        text,
        "\n{:<12} {:>8} {:>8} {:>10} {:>16} {:>16} {:>9} {:>9} {:>6}",
        "policy",
        "window",
        "served",
        "rider cost",
        "pickup mean/p95",
        "wait mean/p95",
        "empty km",
        "on trips",
        "lost"
    );
    for kpis in runs {
        let window = if kpis.window_ms == 0 {
            "none".into()
        } else {
            seconds(kpis.window_ms as f64 / 1000.0)
        };
        let _ = writeln!(
            text,
            "{:<12} {:>8} {:>8} {:>10} {:>16} {:>16} {:>9} {:>9} {:>6}",
            kpis.policy,
            window,
            percent(kpis.match_rate),
            kpis.rider_cost_s.map_or_else(dash, seconds),
            mean_p95(&kpis.pickup_eta_s),
            mean_p95(&kpis.wait_s),
            percent(kpis.empty_km_share),
            percent(kpis.utilisation),
            kpis.lost(),
        );
    }
    text.push_str(
        "\npickup and wait: of served riders. rider cost: the mean wait with each lost rider counted as the\n\
         longest wait and pickup. empty km: share of all kilometres. on trips: share of driver time.\n",
    );
    for kpis in runs.iter().filter(|kpis| kpis.windows_deferring > 0) {
        let _ = writeln!(
            text,
            "{}: {} of {} windows had more requests than max_snapshot_requests and took the oldest",
            kpis.policy, kpis.windows_deferring, kpis.windows
        );
    }
    for kpis in runs {
        write_refusals(text, kpis);
    }
    for kpis in runs {
        if let Some(ahead) = &kpis.ahead {
            let (set, wait) = (ahead.in_words(), ahead.wait_in_words());
            let _ = writeln!(text, "{}: {set}\n{}: {wait}", kpis.policy, kpis.policy);
        }
    }
    for policy in Policy::ALL {
        if runs.iter().any(|kpis| kpis.is_of(policy)) {
            let _ = writeln!(text, "{:<12} {}", policy.name(), policy.describe());
        }
    }
}

/// Who refused, where anybody could.
fn write_refusals(text: &mut String, kpis: &Kpis) {
    let mut parts = Vec::new();
    if let (Some(all), Some(at_eta)) = (kpis.gave_up, kpis.gave_up_at_eta) {
        parts.push(format!(
            "{} riders gave up waiting and {at_eta} at the ETA they were shown",
            all - at_eta
        ));
    }
    if let Some(declined) = kpis.declined {
        parts.push(format!("drivers declined {declined} offers"));
    }
    if !parts.is_empty() {
        let _ = writeln!(text, "{}: {}", kpis.policy, parts.join(", "));
    }
}

fn write_gains(text: &mut String, report: &ReplayReport) {
    if report.gain_vs.is_empty() {
        return;
    }
    // a gain over oldest-first greedy alone would say more than it is worth
    if !report.gain_vs.contains_key(Policy::GreedyEdge.name()) {
        text.push_str("\nwhat batch gains is shown beside greedy-edge: --policy all\n");
        return;
    }
    let _ = writeln!(
        text,
        "\nbatch against    rider cost    mean pickup         served    empty km a trip"
    );
    for policy in Policy::ALL {
        let Some(gain) = report.gain_vs.get(policy.name()) else {
            continue;
        };
        let _ = writeln!(
            text,
            "{:<12} {:>14} {:>14} {:>14} {:>18}",
            policy.name(),
            signed(gain.rider_cost_pct, " %"),
            signed(gain.pickup_eta_mean_pct, " %"),
            signed(gain.match_rate_pts, " pts"),
            signed(gain.empty_km_per_trip_pct, " %"),
        );
    }
    text.push_str("positive: batch is better\n");
    let batch = report.runs.iter().find(|kpis| kpis.is_of(Policy::Batch));
    if let Some(ahead) = batch.and_then(|kpis| kpis.ahead.as_ref()) {
        let _ = writeln!(text, "batch {}; the others do not", ahead.in_words());
    }
    if let Some(times) = report
        .runs
        .iter()
        .find(|k| k.is_of(Policy::Batch))
        .map(|k| k.solve_ms)
        && let (Some(p50), Some(p99), Some(max)) = (times.p50, times.p99, times.max)
    {
        let _ = writeln!(
            text,
            "solve a window: {p50:.3} ms median, {p99:.3} ms p99, {max:.3} ms at most"
        );
    }
}

pub(super) fn write_input(text: &mut String, input: &InputReport) {
    let _ = writeln!(
        text,
        "{} rows read, {} used",
        input.rows_read, input.rows_used
    );
    for (reason, rows) in &input.rejected {
        let _ = writeln!(text, "  {rows:>9} {reason}");
    }
}

fn mean_p95(spread: &Spread) -> String {
    match (spread.mean, spread.p95) {
        (Some(mean), Some(p95)) => format!("{} / {}", seconds(mean), seconds(p95)),
        _ => dash(),
    }
}

pub(super) fn seconds(s: f64) -> String {
    format!("{s:.1} s")
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| format!("{:.1} %", 100.0 * share))
}

pub(super) fn signed(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(dash, |value| format!("{value:+.1}{unit}"))
}

pub(super) fn dash() -> String {
    "–".into()
}
