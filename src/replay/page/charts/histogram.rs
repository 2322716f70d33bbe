//! A distribution over several powers of ten, as bars on a logarithmic axis.

use super::{
    super::{
        figures::{at, short},
        markup::{Element, of_text},
        sketch::Sketch,
    },
    axis::{self, LINE},
    labels::moved_apart,
    plot::{Drawing, WIDTH},
    scale::{Scale, round_up},
};

/// A histogram of a sketch.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct HistogramChart<'a> {
    /// What it shows.
    pub(in super::super) title: &'a str,
    /// What is to be seen in it.
    pub(in super::super) description: &'a str,
    /// Unit of the values.
    pub(in super::super) unit: &'a str,
    /// The values.
    pub(in super::super) values: &'a Sketch,
    /// Values to be marked, with their names.
    pub(in super::super) marks: &'a [(String, f64)],
}

const LEFT: f64 = 44.0;
const TOP: f64 = 62.0;
const HEIGHT: f64 = 130.0;
const BARS: usize = 32;

/// Draws a histogram; without values an empty frame.
pub(in super::super) fn histogram(chart: &HistogramChart<'_>) -> Drawing {
    let end = |q: f64| chart.values.quantile(q).unwrap_or(1.0).max(1e-3);
    // to whole powers of ten, two at least
    let low = libm::log10(end(0.0)).floor();
    let high = libm::log10(end(1.0) * 1.02).ceil().max(low + 2.0);
    let bottom = TOP + HEIGHT;
    let x = Scale::new(low, high, LEFT, WIDTH - 12.0);
    let edge = |n: usize| low + (high - low) * n as f64 / BARS as f64;
    let total = chart.values.total().max(1) as f64;
    let shares: Vec<f64> = (0..BARS)
        .map(|n| {
            let up_to = |power: f64| chart.values.up_to(libm::pow(10.0, power));
            // the first bar takes what lies below the axis
            let before = if n == 0 { 0.0 } else { up_to(edge(n)) };
            100.0 * (up_to(edge(n + 1)) - before) / total
        })
        .collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let y = Scale::new(0.0, round_up(most, 4), bottom, TOP);
    let ticks: Vec<(f64, String)> = (low as i64..=high as i64)
        .map(|power| (x.at(power as f64), power_of_ten(power)))
        .collect();
    let (left, right) = x.ends();
    let mut content = vec![
        axis::vertical(&y, (left, right), (TOP - 10.0, "% of windows"), 4),
        axis::horizontal(&ticks, (left, right), bottom, chart.unit),
    ];
    for (n, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let (from, to, height) = (x.at(edge(n)), x.at(edge(n + 1)), bottom - y.at(*share));
        content.push(
            Element::new("rect")
                .with("x", at(from + 0.5))
                .with("y", at(bottom - height))
                .with("width", at((to - from - 1.0).max(0.5)))
                .with("height", at(height))
                .class("bar solid"),
        );
    }
    content.extend(marks(chart, &x, bottom));
    Drawing {
        height: bottom + 4.0 + 2.0 * LINE + 6.0,
        title: chart.title.into(),
        description: chart.description.into(),
        content,
    }
}

fn marks(chart: &HistogramChart<'_>, x: &Scale, bottom: f64) -> Vec<Element> {
    let places: Vec<f64> = chart
        .marks
        .iter()
        .map(|(_, value)| x.at(libm::log10(value.max(1e-3))))
        .collect();
    let named = moved_apart(&places, 104.0, LEFT + 50.0, WIDTH - 52.0);
    let marks = chart.marks.iter().zip(&places).zip(&named);
    marks
        .map(|(((name, value), place), label)| {
            let text = of_text("text", format_args!("{name} {}", short(*value)))
                .with("x", at(*label))
                .with("y", 34)
                .class("middle strong");
            Element::new("g")
                .child(axis::line(*label, 38.0, *place, TOP - 4.0).class("lead mark-line"))
                .child(axis::line(*place, TOP - 4.0, *place, bottom).class("mark-line"))
                .child(text)
        })
        .collect()
}

fn power_of_ten(power: i64) -> String {
    short(libm::pow(10.0, power as f64))
}
