//! The recommended setting by hour of day.

use super::{
    super::{
        charts::{
            Column, Drawing, Figure, Line, LineChart, Style, Table, figure, line_chart, round_up,
        },
        figures::{dash, seconds, whole},
        markup::{Element, of_text},
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
    let says = "Each hour is compared on its own blocks, so it knows less than the whole: a window that changes from hour to hour is worth setting only where its reason says better.";
    if hours.unwrap_or(0) < FEWEST_HOURS {
        let hours = Element::new("ul")
            .class("against")
            .children(report.by_hour.iter().map(in_words));
        let card = Element::new("div").class("card").with("id", "by-hour");
        return Some(
            card.child(of_text("h3", "By hour of day"))
                .child(of_text("p", says).class("note"))
                .child(hours),
        );
    }
    let curve = |value: &dyn Fn(&HourReport) -> Option<f64>| -> Vec<Line> {
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
    let drawings = vec![
        hours_chart(
            "Recommended window by hour",
            "recommended window, seconds",
            curve(&|hour| Some(hour.recommended.window_ms as f64 / 1000.0)),
        ),
        hours_chart(
            "Rider cost by hour at the reference",
            "rider cost at the reference, seconds",
            curve(&|hour| reference(hour).and_then(|row| row.rider_cost_s)),
        ),
    ];
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
        says: says.into(),
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

fn hours_chart(title: &str, y_unit: &str, lines: Vec<Line>) -> Drawing {
    let values = lines.iter().flat_map(|line| &line.points);
    let most = values.filter_map(|point| point.1).fold(0.0, f64::max);
    let tick = |n: i32| (f64::from(n * 6), format!("{:02}:00", n * 6));
    line_chart(&LineChart {
        title: title.into(),
        description: "By hour of day; the figures stand in the table.".into(),
        y_unit: y_unit.into(),
        x_unit: "hour of the day".into(),
        x: (0.0, 24.0),
        x_ticks: Some((0..=4).map(tick).collect()),
        y: Some((0.0, round_up(most, 4))),
        beyond: Vec::new(),
        band: None,
        height: 110.0,
        lines,
    })
}

fn in_words(hour: &HourReport) -> Element {
    let text = format!(
        "{} requests, rider cost {} at the reference. {}",
        whole(hour.requests),
        reference(hour).map_or_else(dash, |row| seconds(row.rider_cost_s)),
        hour.recommended.reason
    );
    let name = format!("{:02}:00, {} cars: ", hour.hour, whole(hour.drivers as u64));
    Element::new("li").child(of_text("strong", name)).text(text)
}

fn reference(hour: &HourReport) -> Option<&HourRow> {
    hour.sweep.iter().find(|row| row.reference)
}
