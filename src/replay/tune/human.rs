//! The sweep as tables for people.

use std::fmt::Write as _;

use super::report::{Comparison, HourReport, SweepRow, TuneReport, Verdict, source_in_words};
use crate::replay::{
    report::{dash, percent, seconds, write_input},
    wrapped::wrapped,
};

/// The report as text.
pub fn human(report: &TuneReport) -> String {
    let mut text = String::new();
    write_input(&mut text, &report.input);
    write_method(&mut text, report);
    for fleet in &report.by_fleet {
        let rows: Vec<&SweepRow> = report
            .sweep
            .iter()
            .filter(|row| row.setting.drivers == fleet.drivers)
            .collect();
        let _ = writeln!(text, "\n{} drivers", fleet.drivers);
        write_rows(&mut text, &rows);
        let _ = writeln!(
            text,
            "\nrecommended: {}",
            wrapped(&fleet.recommended.reason, 13)
        );
        for rule in report
            .rules
            .iter()
            .filter(|r| r.rule.drivers == fleet.drivers)
        {
            let line = format!(
                "{} at its best ({}) against {} at its best ({}): {} ({}). {}",
                rule.ours.policy,
                at(rule.ours.window_ms, rule.ours.max_pickup_eta_s),
                rule.rule.policy,
                at(rule.rule.window_ms, rule.rule.max_pickup_eta_s),
                difference(&rule.comparison),
                interval(&rule.comparison),
                capital(&rule.note),
            );
            let _ = writeln!(text, "{}", wrapped(&line, 0));
        }
        let hours: Vec<&HourReport> = report
            .by_hour
            .iter()
            .filter(|hour| hour.drivers == fleet.drivers)
            .collect();
        write_hours(&mut text, &hours);
    }
    write_legend(&mut text, report);
    let _ = writeln!(
        text,
        "\n{} replays of {} requests in {:.1} s",
        report.method.runs, report.method.requests, report.wall_s
    );
    text
}

fn write_method(text: &mut String, report: &TuneReport) {
    let method = &report.method;
    let _ = writeln!(
        text,
        "\n{} seeds; {} blocks of {} minutes scored",
        method.seeds.len(),
        method.blocks,
        method.block_ms / 60_000
    );
}

fn write_rows(text: &mut String, rows: &[&SweepRow]) {
    // columns of settings that are off everywhere would only take room
    let ahead = rows
        .iter()
        .any(|row| row.setting.plan_ahead_ms > 0 || row.setting.demand_ahead_ms > 0);
    let _ = writeln!(
        text,
        "\n{:<12} {:>7} {:>7} {:>6}{} {:>8} {:>10} {:>9} {:>20} {:<15} {:>13} {:>9}",
        "policy",
        "window",
        "cap",
        "age",
        if ahead {
            format!(" {:>6} {:>14}", "plan", "demand")
        } else {
            String::new()
        },
        "served",
        "rider cost",
        "differs",
        "95 % interval",
        "verdict",
        "wait mean/p95",
        "empty km"
    );
    for row in rows {
        let setting = &row.setting;
        let _ = writeln!(
            text,
            "{:<12} {:>7} {:>7} {:>6}{} {:>8} {:>10} {:>9} {:>20} {:<15} {:>13} {:>9}",
            setting.policy,
            window(setting.window_ms),
            format!("{} s", setting.max_pickup_eta_s),
            setting.age_weight,
            if ahead {
                let seconds = |ms: i64| format!("{} s", ms as f64 / 1000.0);
                let (plan, demand) = (setting.plan_ahead_ms, setting.demand_ahead_ms);
                let demand = seconds(demand) + source_in_words(setting.learned_demand);
                format!(" {:>6} {demand:>14}", seconds(plan))
            } else {
                String::new()
            },
            percent(row.match_rate),
            row.rider_cost_s.map_or_else(dash, seconds),
            if row.reference {
                String::new()
            } else {
                difference(&row.comparison)
            },
            if row.reference {
                String::new()
            } else {
                interval(&row.comparison)
            },
            if row.reference {
                "reference"
            } else {
                verdict(row.comparison.verdict)
            },
            match (row.wait_s.mean, row.wait_s.p95) {
                (Some(mean), Some(p95)) => format!("{mean:.0} / {p95:.0} s"),
                _ => dash(),
            },
            percent(row.empty_km_share),
        );
    }
}

/// The hours in which there is enough to say, or one line that there are none.
fn write_hours(text: &mut String, hours: &[&HourReport]) {
    let known: Vec<&&HourReport> = hours
        .iter()
        .filter(|hour| {
            let verdicts = hour.sweep.iter().map(|row| row.comparison.verdict);
            verdicts.clone().any(|v| v != Verdict::NotEnoughData)
        })
        .collect();
    if known.is_empty() {
        text.push_str("by hour of day: not enough data (12 blocks of each hour are needed)\n");
        return;
    }
    let _ = writeln!(text, "\nhour  requests  blocks  recommended");
    for hour in known {
        let _ = writeln!(
            text,
            "{:>4} {:>9} {:>7}  {}",
            hour.hour,
            hour.requests,
            hour.blocks,
            wrapped(&hour.recommended.reason, 24)
        );
    }
    if hours.len() > hours.iter().filter(|h| h.blocks >= 12).count() {
        text.push_str("hours left out have not enough data\n");
    }
}

fn write_legend(text: &mut String, report: &TuneReport) {
    let _ = writeln!(
        text,
        "\nrider cost: the mean wait, a lost rider counted as {}, in every setting alike. differs: from the\n\
         reference, on the same requests; negative is better. interval: all of one table's rule together.\n\
         better, worse: the interval leaves out 0. equivalent: it lies within 1 % of the reference.",
        seconds(report.method.lost_rider_s)
    );
    if report
        .sweep
        .iter()
        .any(|row| row.setting.policy == "greedy")
    {
        text.push_str("greedy: oldest request first, a weak rule; judge batch by greedy-edge.\n");
    }
    for note in &report.notes {
        let _ = writeln!(text, "{}", wrapped(note, 0));
    }
}

fn at(window_ms: i64, cap_s: f64) -> String {
    if window_ms == 0 {
        format!("cap {cap_s} s")
    } else {
        format!("{}, cap {cap_s} s", window(window_ms))
    }
}

fn window(window_ms: i64) -> String {
    if window_ms == 0 {
        "none".into()
    } else {
        format!("{} s", window_ms as f64 / 1000.0)
    }
}

fn difference(comparison: &Comparison) -> String {
    comparison
        .diff_s
        .map_or_else(dash, |diff| format!("{:+.2} s", hundredths(diff)))
}

fn interval(comparison: &Comparison) -> String {
    comparison.interval_s.map_or_else(dash, |[low, high]| {
        format!("{:+.2} to {:+.2} s", hundredths(low), hundredths(high))
    })
}

/// Rounded, and nothing is nothing rather than minus nothing.
fn hundredths(s: f64) -> f64 {
    (s * 100.0).round() / 100.0 + 0.0
}

const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotEnoughData => "not enough data",
        other => other.name(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
