//! How long riders wait until their car is there, lost riders not left out.

use super::{
    charts::{Column, Figure, Line, LineChart, Style, Table, figure, line_chart, round_up},
    collect::{Collected, RunBins},
    figures::{dash, percent, seconds},
    markup::Element,
};
use crate::replay::Kpis;

/// Points of a curve.
const POINTS: usize = 120;
/// The axis ends where this share of the served has its car under the slowest rule.
const SHOWN: f64 = 0.985;

/// The share of all requests whose car has arrived, over time.
pub(super) fn wait_curves(collected: &Collected, kpis: &[Kpis]) -> Element {
    let requests: u32 = collected.requests.iter().sum();
    let all = f64::from(requests.max(1));
    let ends = collected.runs.iter();
    let end = ends
        .filter_map(|run| run.wait_s.quantile(SHOWN))
        .fold(1.0, f64::max);
    let end = round_up(end, 5);
    let lines: Vec<Line> = collected
        .runs
        .iter()
        .map(|run| {
            let points = (0..=POINTS).map(|n| {
                let wait = end * n as f64 / POINTS as f64;
                (wait, Some(100.0 * run.wait_s.up_to(wait) / all))
            });
            Line {
                name: run.policy.name().into(),
                style: Style::of_policy(run.policy),
                points: points.collect(),
                spans: Vec::new(),
                every_marker: false,
            }
        })
        .collect();
    let served = collected.runs.iter().map(|run| {
        let share = run.wait_s.total() as f64 / all;
        format!("{} ends at {}", run.policy, percent(Some(share)))
    });
    let served: Vec<String> = served.collect();
    let drawing = line_chart(&LineChart {
        title: "Share of riders whose car has arrived, by seconds since they asked".into(),
        description: format!("Curves that rise with the wait: {}.", served.join(", ")),
        y_unit: "% of all requests".into(),
        x_unit: "seconds since the request".into(),
        x: (0.0, end),
        x_ticks: None,
        y: Some((0.0, 100.0)),
        beyond: Vec::new(),
        band: None,
        height: 190.0,
        lines,
    });
    figure(Figure {
        id: "wait".into(),
        title: "How long until the car is there".into(),
        says: "Higher and further left is better. A curve ends below 100 % by the riders that a rule lost.".into(),
        key: None,
        drawings: vec![drawing],
        table: table(&collected.runs, kpis, all),
    })
}

/// Quantiles of all requests: lost riders wait for ever.
fn table(runs: &[RunBins], kpis: &[Kpis], all: f64) -> Table {
    let shares = [0.25, 0.5, 0.75, 0.9, 0.95];
    let mut columns = vec![Column::text("Rule")];
    columns
        .extend(shares.map(|share| Column::figure(format!("{} % have it within", 100.0 * share))));
    columns.push(Column::figure("Mean of the served"));
    let rows = runs.iter().zip(kpis).map(|(run, kpis)| {
        let served = run.wait_s.total() as f64;
        let mut row = vec![run.policy.name().to_owned()];
        row.extend(shares.map(|share| {
            let among = share * all / served.max(1.0);
            if among > 1.0 {
                return dash();
            }
            seconds(run.wait_s.quantile(among).map(f64::round))
        }));
        row.push(seconds(kpis.wait_s.mean));
        row
    });
    Table {
        columns,
        rows: rows.collect(),
    }
}
