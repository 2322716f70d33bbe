//! The recommended setting by hour of day.

use super::{
    super::{
        charts::{Column, Figure, Line, LineChart, Style, Table, figure, line_chart, round_up},
        figures::{dash, seconds, whole},
        markup::Element,
    },
    recommended::setting_text,
};
use crate::replay::tune::{HourReport, HourRow, TuneReport};

/// A curve of fewer hours says nothing that the table does not.
const FEWEST_HOURS: usize = 3;

/// Windows by hour; nothing without scored hours.
pub(super) fn by_hour(report: &TuneReport) -> Option<Element> {
    if report.by_hour.is_empty() {
        return None;
    }
    let fleets: Vec<usize> = report.by_fleet.iter().map(|fleet| fleet.drivers).collect();
    let of_fleet = |fleet: usize| -> Vec<&HourReport> {
        let hours = report.by_hour.iter();
        hours.filter(|hour| hour.drivers == fleet).collect()
    };
    let hours = fleets.iter().map(|fleet| of_fleet(*fleet).len()).max();
    let mut drawings = Vec::new();
    if hours.unwrap_or(0) >= FEWEST_HOURS {
        let lines = |value: &dyn Fn(&HourReport) -> Option<f64>| -> Vec<Line> {
            let lines = fleets.iter().enumerate().map(|(n, fleet)| Line {
                name: format!("{} cars", whole(*fleet as u64)),
                style: Style::nth(n),
                points: of_fleet(*fleet)
                    .iter()
                    .map(|hour| (f64::from(hour.hour), value(hour)))
                    .collect(),
                spans: Vec::new(),
                every_marker: true,
            });
            lines.collect()
        };
        let chart = |title: &str, y_unit: &str, lines: Vec<Line>| {
            let values = lines.iter().flat_map(|line| &line.points);
            let most = values.filter_map(|point| point.1).fold(0.0, f64::max);
            line_chart(&LineChart {
                title: title.into(),
                description: String::from("By hour of day; the figures stand in the table."),
                y_unit: y_unit.into(),
                x_unit: "hour of the day".into(),
                x: (0.0, 24.0),
                x_ticks: Some(
                    (0..=4)
                        .map(|n| (f64::from(n * 6), format!("{}:00", n * 6)))
                        .collect(),
                ),
                y: Some((0.0, round_up(most, 4))),
                beyond: Vec::new(),
                band: None,
                height: 110.0,
                lines,
            })
        };
        drawings.push(chart(
            "Recommended window by hour",
            "recommended window, seconds",
            lines(&|hour| Some(hour.recommended.window_ms as f64 / 1000.0)),
        ));
        drawings.push(chart(
            "Rider cost by hour at the reference",
            "rider cost at the reference, seconds",
            lines(&|hour| reference(hour).and_then(|row| row.rider_cost_s)),
        ));
    }
    let rows = report.by_hour.iter().map(|hour| {
        vec![
            format!("{:02}:00", hour.hour),
            whole(hour.drivers as u64),
            whole(hour.requests),
            reference(hour).map_or_else(dash, |row| seconds(row.rider_cost_s)),
            setting_text(&hour.recommended),
            hour.recommended.reason.clone(),
        ]
    });
    Some(figure(Figure {
        id: "by-hour".into(),
        title: "By hour of day".into(),
        says: "Each hour is compared on its own blocks, so it knows less than the whole: a window that changes from hour to hour is worth setting only where its reason says better.".into(),
        key: None,
        drawings,
        table: Table {
            columns: vec![
                Column::text("Hour"),
                Column::figure("Cars"),
                Column::figure("Requests"),
                Column::figure("Rider cost at the reference"),
                Column::text("Recommended"),
                Column::text("Why"),
            ],
            rows: rows.collect(),
        },
    }))
}

fn reference(hour: &HourReport) -> Option<&HourRow> {
    hour.sweep.iter().find(|row| row.reference)
}
