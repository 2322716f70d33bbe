//! What each setting costs riders and drivers, for one fleet.

use super::{
    super::{
        charts::{
            Column, Dot, Drawing, Figure, Line, LineChart, PointChart, Table, figure, line_chart,
            point_chart, round_span,
        },
        figures::{dash, percent, seconds, short, window},
        markup::Element,
    },
    curves::Curves,
    recommended::{ahead_in_words, verdict_text},
};
use crate::replay::{
    Policy,
    tune::{Comparison, Setting, SweepRow},
};

/// Per cent of the reference within which settings are equivalent.
const EQUIVALENT: f64 = 0.01;

/// The charts of one fleet.
pub(super) fn by_setting(n: usize, rows: &[&SweepRow], swept: &str) -> Vec<Element> {
    let of_swept: Vec<&SweepRow> = rows
        .iter()
        .copied()
        .filter(|row| row.setting.policy == swept)
        .collect();
    let curves = Curves::of(&of_swept);
    let left_out = match curves.left_out {
        0 => String::new(),
        n => format!(" The {n} curves that cost riders most are left out of the drawings."),
    };
    let mut cards = Vec::new();
    if curves.values.len() > 1 {
        cards.push(differences(n, &curves, &of_swept, &left_out));
        cards.push(figures(n, &curves, rows, swept, &left_out));
        cards.push(trade(n, &curves, &left_out));
    } else {
        cards.push(figure(Figure {
            id: format!("settings-{n}"),
            title: "Every setting".into(),
            says: "One setting of the swept rule ran: nothing to compare it with.".into(),
            key: None,
            drawings: Vec::new(),
            table: settings_table(rows),
        }));
    }
    cards
}

/// Differences to the reference with their intervals.
fn differences(n: usize, curves: &Curves<'_>, rows: &[&SweepRow], left_out: &str) -> Element {
    let reference = rows.iter().find(|row| row.reference);
    let none_s = reference
        .and_then(|row| row.rider_cost_s)
        .map(|cost| cost * EQUIVALENT);
    let interval = |row: &SweepRow| row.comparison.interval_s;
    let difference = |row: &SweepRow| {
        if row.reference {
            Some(0.0)
        } else {
            row.comparison.diff_s
        }
    };
    let mut lines = curves.lines(difference);
    for (line, (_, _, rows)) in lines.iter_mut().zip(&curves.drawn) {
        line.spans = rows.iter().map(|row| interval(row)).collect();
    }
    let shown = curves.drawn.iter().flat_map(|curve| &curve.2);
    let ends = shown.flat_map(|row| {
        let value = difference(row);
        let [low, high] = interval(row).map_or([value; 2], |span| span.map(Some));
        [low, high, value]
    });
    let none = none_s.unwrap_or(0.0);
    let (low, high) = ends.flatten().fold((-none, none), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let reference = reference.map_or_else(dash, |row| in_words(&row.setting));
    let drawing = line_chart(&LineChart {
        title: "Difference of rider cost to the reference".into(),
        description: format!("Each setting against {reference}; below zero is better."),
        y_unit: "seconds a request against the reference".into(),
        x_unit: curves.along.axis().into(),
        x: curves.span(),
        x_ticks: Some(curves.ticks()),
        y: Some(round_span(low, high, 6)),
        beyond: Vec::new(),
        band: none_s.map(|none| (-none, none)),
        height: 180.0,
        lines,
    });
    figure(Figure {
        id: format!("differences-{n}"),
        title: "Which setting costs riders less, and how sure that is".into(),
        says: format!(
            "Rider cost less that of the reference ({reference}), with 95 % intervals. An interval wholly below zero is better, one inside the shaded band (± 1 %) no difference.{left_out}"
        ),
        key: None,
        drawings: vec![drawing],
        table: verdict_table(rows),
    })
}

/// The figures themselves, over the same axis, the other rules beside them.
fn figures(
    n: usize,
    curves: &Curves<'_>,
    rows: &[&SweepRow],
    swept: &str,
    left_out: &str,
) -> Element {
    let chart = |title: &str, y_unit: &str, value: &dyn Fn(&SweepRow) -> Option<f64>| {
        let mut lines = curves.lines(value);
        for policy in Policy::ALL.into_iter().filter(|p| p.name() != swept) {
            let theirs: Vec<&SweepRow> = rows
                .iter()
                .copied()
                .filter(|row| row.setting.policy == policy.name())
                .collect();
            lines.extend(curves.beside(policy, &theirs, value));
        }
        small_chart(title, y_unit, curves, &lines)
    };
    let drawings = vec![
        chart("Rider cost", "rider cost, seconds", &|row| row.rider_cost_s),
        chart(
            "Time until a car is assigned",
            "until assigned, mean seconds",
            &|row| row.assign_delay_s.mean,
        ),
        chart(
            "Time until the assigned car arrives",
            "pickup, mean seconds",
            &|row| row.pickup_eta_s.mean,
        ),
        chart("Empty driving", "empty km, % of all km", &|row| {
            row.empty_km_share.map(|share| 100.0 * share)
        }),
    ];
    figure(Figure {
        id: format!("settings-{n}"),
        title: "What each setting gives".into(),
        says: format!(
            "Times are those of served riders; rider cost counts the lost ones. A rule beside the swept one stands at its own best; greedy is oldest-first, a weak baseline.{left_out}"
        ),
        key: None,
        drawings,
        table: settings_table(rows),
    })
}

fn small_chart(title: &str, y_unit: &str, curves: &Curves<'_>, lines: &[Line]) -> Drawing {
    let span = |lines: &[Line]| {
        let values = || {
            lines
                .iter()
                .flat_map(|line| &line.points)
                .filter_map(|p| p.1)
        };
        (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        )
    };
    let swept = curves.drawn.len().min(lines.len());
    let (mut low, mut high) = span(&lines[..swept]);
    // a rule that would press the swept one flat is said instead of drawn
    let room = (high - low).max(0.05 * high.abs());
    let mut beyond = Vec::new();
    let mut drawn = lines[..swept].to_vec();
    for line in &lines[swept..] {
        let (least, most) = span(std::slice::from_ref(line));
        if least < low - room || most > high + room {
            let values = if most - least > 0.01 * most.abs() {
                format!("{} to {}", short(least), short(most))
            } else {
                short(most)
            };
            beyond.push((
                line.style,
                format!("{}: {values}, off the scale", line.name),
            ));
        } else {
            drawn.push(line.clone());
        }
    }
    for line in &drawn {
        let (least, most) = span(std::slice::from_ref(line));
        (low, high) = (low.min(least), high.max(most));
    }
    let lines = drawn;
    line_chart(&LineChart {
        title: title.into(),
        description: super::super::charts::last_values(&lines, ""),
        y_unit: y_unit.into(),
        x_unit: curves.along.axis().into(),
        x: curves.span(),
        x_ticks: Some(curves.ticks()),
        y: Some(round_span(low, high, 4)),
        beyond,
        band: None,
        height: 110.0,
        lines,
    })
}

/// Waiting for the batch against driving to the rider.
fn trade(n: usize, curves: &Curves<'_>, left_out: &str) -> Element {
    let mut dots = Vec::new();
    for (name, style, rows) in &curves.drawn {
        let last = rows.len().saturating_sub(1);
        for (at, row) in rows.iter().enumerate() {
            let (Some(cost), Some(share)) = (row.rider_cost_s, row.empty_km_share) else {
                continue;
            };
            let value = short(curves.along.of(&row.setting));
            let label = if curves.drawn.len() > 1 && at == last {
                format!("{value} ({name})")
            } else {
                value
            };
            dots.push(Dot {
                name: label,
                style: *style,
                x: cost,
                y: 100.0 * share,
            });
        }
    }
    let rows = curves.drawn.iter().flat_map(|curve| &curve.2).map(|row| {
        vec![
            in_words(&row.setting),
            seconds(row.rider_cost_s),
            percent(row.empty_km_share),
        ]
    });
    let table = Table {
        columns: vec![
            Column::text("Setting"),
            Column::figure("Rider cost"),
            Column::figure("Empty km"),
        ],
        rows: rows.collect(),
    };
    let along = curves.along.in_words();
    figure(Figure {
        id: format!("trade-{n}"),
        title: "Riders’ time against drivers’ kilometres".into(),
        says: format!(
            "Nearer the lower left is better for both. The figure beside a point is its {along}.{left_out}"
        ),
        key: None,
        drawings: vec![point_chart(&PointChart {
            title: "Rider cost against empty driving, by setting".into(),
            description: "Nearer the lower left is better for riders and for drivers.".into(),
            x_unit: "rider cost, seconds".into(),
            y_unit: "empty km, % of all km".into(),
            dots,
            joined: true,
        })],
        table,
    })
}

fn verdict_table(rows: &[&SweepRow]) -> Table {
    let body = rows.iter().map(|row| {
        let mut cells = vec![in_words(&row.setting), seconds(row.rider_cost_s)];
        if row.reference {
            cells.extend(["0".into(), dash(), "the reference".into()]);
        } else {
            cells.extend(comparison_cells(&row.comparison));
        }
        cells
    });
    Table {
        columns: vec![
            Column::text("Setting"),
            Column::figure("Rider cost"),
            Column::figure("Difference"),
            Column::figure("95 % interval"),
            Column::text("Verdict"),
        ],
        rows: body.collect(),
    }
}

/// A comparison as cells: difference, interval, verdict.
pub(super) fn comparison_cells(comparison: &Comparison) -> [String; 3] {
    [
        seconds(comparison.diff_s),
        comparison.interval_s.map_or_else(dash, |[low, high]| {
            format!("{} to {} s", short(low), short(high))
        }),
        verdict_text(comparison.verdict).into(),
    ]
}

fn settings_table(rows: &[&SweepRow]) -> Table {
    let body = rows.iter().map(|row| {
        vec![
            format!("{}, {}", row.setting.policy, in_words(&row.setting)),
            percent(row.match_rate),
            seconds(row.rider_cost_s),
            seconds(row.assign_delay_s.mean),
            seconds(row.pickup_eta_s.mean),
            seconds(row.wait_s.mean),
            seconds(row.wait_s.p95),
            percent(row.empty_km_share),
        ]
    });
    Table {
        columns: vec![
            Column::text("Setting"),
            Column::figure("Served"),
            Column::figure("Rider cost"),
            Column::figure("Until assigned"),
            Column::figure("Pickup"),
            Column::figure("Wait, mean"),
            Column::figure("Wait, p95"),
            Column::figure("Empty km"),
        ],
        rows: body.collect(),
    }
}

/// A setting in words.
pub(super) fn in_words(setting: &Setting) -> String {
    let window = if setting.window_ms == 0 {
        "no window".into()
    } else {
        format!("window {}", window(setting.window_ms))
    };
    format!(
        "{window}, cap {} s, age {}{}",
        short(setting.max_pickup_eta_s),
        short(setting.age_weight),
        ahead_in_words(
            setting.plan_ahead_ms,
            setting.demand_ahead_ms,
            setting.learned_demand
        ),
    )
}
