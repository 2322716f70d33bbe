//! Demand, match rate and empty driving over request time.

use super::{
    account::Account,
    charts::{Column, Figure, Line, LineChart, Style, Table, figure, last_values, line_chart},
    collect::{Collected, RunBins, TimeBin},
    figures::{short, whole},
    markup::Element,
    timeline::Timeline,
};
use crate::config::RegionConfig;

/// With fewer requests than this a share is chance.
const FEW: u32 = 10;
/// A bin of which the recording covers less than this is left out.
const COVERED: f64 = 0.5;
/// Rows of the table.
const TABLE_ROWS: usize = 48;

/// Three charts over the same axis.
pub(super) fn over_time(
    collected: &Collected,
    config: &RegionConfig,
    account: &Account,
) -> Element {
    let timeline = &collected.timeline;
    let (step, ticks) = (timeline.step_text(), timeline.ticks(&account.tz, 5));
    let chart = |title: &str, y_unit: String, y: Option<(f64, f64)>, lines: Vec<Line>, height| {
        let description = format!("At the end: {}.", last_values(&lines, ""));
        line_chart(&LineChart {
            title: title.into(),
            description,
            y_unit,
            x_unit: "time of the request".into(),
            x: (0.0, timeline.bins() as f64),
            x_ticks: Some(ticks.clone()),
            y,
            beyond: Vec::new(),
            band: None,
            height,
            lines,
        })
    };
    let demand = Line {
        name: "requests".into(),
        style: Style::nth(4),
        points: collected
            .requests
            .iter()
            .enumerate()
            .map(|(bin, count)| {
                // a bin that the recording covers in part is scaled
                let covered = timeline.covered(bin);
                let rate = (covered >= COVERED).then(|| f64::from(*count) / covered);
                (Timeline::middle(bin), rate)
            })
            .collect(),
        spans: Vec::new(),
        every_marker: false,
    };
    let rates = curves(collected, |run, bin, requests| {
        says_something(collected, bin, requests)
            .then(|| 100.0 * f64::from(run.times[bin].matched) / f64::from(requests))
    });
    let speed_kmh = config.speed_kmh;
    let empty = curves(collected, |run, bin, requests| {
        says_something(collected, bin, requests).then(|| empty_pct(&run.times[bin], speed_kmh))?
    });
    let drawings = vec![
        chart(
            "Requests over time",
            format!("requests a {step}"),
            None,
            vec![demand],
            90.0,
        ),
        chart(
            "Match rate over time",
            "% of requests served".into(),
            Some((0.0, 100.0)),
            rates.clone(),
            130.0,
        ),
        chart(
            "Empty driving over time",
            "empty km, % of all km".into(),
            None,
            empty.clone(),
            130.0,
        ),
    ];
    figure(Figure {
        id: "time-charts".into(),
        title: "Demand, riders served and empty driving".into(),
        says: format!(
            "By the {step} in which riders asked. Empty kilometres belong to the request they were driven for. After the last request nobody asks any more, which flatters the last few."
        ),
        key: None,
        drawings,
        table: table(collected, &rates, &empty, account),
    })
}

fn curves(collected: &Collected, value: impl Fn(&RunBins, usize, u32) -> Option<f64>) -> Vec<Line> {
    let lines = collected.runs.iter().map(|run| {
        let points = collected.requests.iter().enumerate();
        Line {
            name: run.policy.name().into(),
            style: Style::of_policy(run.policy),
            points: points
                .map(|(bin, requests)| (Timeline::middle(bin), value(run, bin, *requests)))
                .collect(),
            spans: Vec::new(),
            every_marker: false,
        }
    });
    lines.collect()
}

/// Whether a bin holds enough, and is not one that the recording only touches.
fn says_something(collected: &Collected, bin: usize, requests: u32) -> bool {
    requests >= FEW && collected.timeline.covered(bin) >= COVERED
}

fn empty_pct(bin: &TimeBin, speed_kmh: f64) -> Option<f64> {
    let empty_km = bin.eta_s * speed_kmh / 3600.0;
    let all_km = empty_km + bin.paid_km;
    (all_km > 0.0).then(|| 100.0 * empty_km / all_km)
}

/// The same bins, thinned out where they are many.
fn table(collected: &Collected, rates: &[Line], empty: &[Line], account: &Account) -> Table {
    let mut columns = vec![Column::text("From"), Column::figure("Requests")];
    for run in &collected.runs {
        columns.push(Column::figure(format!("{} served", run.policy)));
        columns.push(Column::figure(format!("{} empty", run.policy)));
    }
    let every = collected.requests.len().div_ceil(TABLE_ROWS);
    let rows = collected.requests.iter().enumerate().step_by(every.max(1));
    let rows = rows.map(|(bin, requests)| {
        let mut row = vec![
            collected.timeline.clock(bin, &account.tz),
            whole(u64::from(*requests)),
        ];
        for (rate, empty) in rates.iter().zip(empty) {
            row.extend([rate, empty].map(|line| {
                let value = line.points.get(bin).and_then(|point| point.1);
                value.map_or_else(super::figures::dash, |value| format!("{} %", short(value)))
            }));
        }
        row
    });
    Table {
        columns,
        rows: rows.collect(),
    }
}
