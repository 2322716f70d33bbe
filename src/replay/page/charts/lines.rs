//! Curves with their names beside their ends.

use std::fmt::Write as _;

use super::{
    super::{
        figures::{at, short},
        markup::{Element, of_text},
    },
    axis::{self, LINE, line},
    labels::moved_apart,
    plot::{Drawing, WIDTH},
    scale::{Scale, round_up},
    series::Style,
};

/// A curve; points must rise in x, and a gap stands where there is nothing to show.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Line {
    /// Its name, beside its end.
    pub(in super::super) name: String,
    /// Its look.
    pub(in super::super) style: Style,
    /// Its points.
    pub(in super::super) points: Vec<(f64, Option<f64>)>,
    /// The interval around each point, where there is one.
    pub(in super::super) spans: Vec<Option<[f64; 2]>>,
    /// Whether every point has its marker, or only a few.
    pub(in super::super) every_marker: bool,
}

/// Curves in one frame.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct LineChart {
    /// What it shows.
    pub(in super::super) title: String,
    /// What is to be seen in it.
    pub(in super::super) description: String,
    /// Unit of the vertical axis.
    pub(in super::super) y_unit: String,
    /// Unit of the horizontal axis.
    pub(in super::super) x_unit: String,
    /// Span of the horizontal axis.
    pub(in super::super) x: (f64, f64),
    /// Ticks of the horizontal axis, or round ones.
    pub(in super::super) x_ticks: Option<Vec<(f64, String)>>,
    /// Span of the vertical axis; from zero to a round value where there is none.
    pub(in super::super) y: Option<(f64, f64)>,
    /// What lies outside the frame, said above it.
    pub(in super::super) beyond: Vec<(Style, String)>,
    /// Values that count as none, shaded.
    pub(in super::super) band: Option<(f64, f64)>,
    /// Height of the frame.
    pub(in super::super) height: f64,
    /// The curves.
    pub(in super::super) lines: Vec<Line>,
}

/// Room for values left of the axis.
const LEFT: f64 = 44.0;
/// Room for the unit above it.
const TOP: f64 = 26.0;
/// Average width of a letter.
const LETTER: f64 = 7.0;
/// Markers on a curve that does not have one on every point.
const MARKERS: usize = 5;

/// Draws curves.
pub(in super::super) fn line_chart(chart: &LineChart) -> Drawing {
    let longest = chart.lines.iter().map(|l| l.name.chars().count()).max();
    // names longer than this would leave no room for the curves
    let names = (longest.unwrap_or(0) as f64 * LETTER + 20.0).min(0.38 * WIDTH);
    let top = TOP + LINE * chart.beyond.len() as f64;
    let (left, right, bottom) = (LEFT, WIDTH - names, top + chart.height);
    // a tall frame has room for more values
    let count = if chart.height > 150.0 { 6 } else { 4 };
    let x = Scale::new(chart.x.0, chart.x.1, left, right);
    let y_span = chart.y.unwrap_or_else(|| {
        let values = chart.lines.iter().flat_map(|line| &line.points);
        let most = values.filter_map(|point| point.1).fold(0.0, f64::max);
        (0.0, round_up(most, 4))
    });
    let y = Scale::new(y_span.0, y_span.1, bottom, top);
    let ticks = match &chart.x_ticks {
        Some(ticks) => ticks
            .iter()
            .map(|(value, label)| (x.at(*value), label.clone()))
            .collect(),
        None => axis::round_ticks(&x, 5),
    };
    let mut content = Vec::new();
    if let Some((low, high)) = chart.band {
        content.push(
            Element::new("rect")
                .with("x", at(left))
                .with("y", at(y.at(high)))
                .with("width", at(right - left))
                .with("height", at(y.at(low) - y.at(high)))
                .class("band"),
        );
    }
    content.extend([
        axis::vertical(&y, (left, right), (TOP - 10.0, &chart.y_unit), count),
        axis::horizontal(&ticks, (left, right), bottom, &chart.x_unit),
    ]);
    let ends: Vec<(f64, f64)> = chart
        .lines
        .iter()
        .map(|line| {
            let last = line
                .points
                .iter()
                .rev()
                .find_map(|(px, py)| Some((*px, (*py)?)));
            last.map_or((right, bottom), |(px, py)| (x.at(px), y.at(py)))
        })
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let places = moved_apart(&wanted, LINE, top + 2.0, bottom - 2.0);
    // the first is the broadest and lies below, so that one that runs along it is seen on it
    for ((line, end), place) in chart.lines.iter().zip(&ends).zip(&places) {
        content.push(curve(line, &x, &y));
        content.push(name(line, *end, right, *place));
    }
    for (n, (style, text)) in chart.beyond.iter().enumerate() {
        let text = of_text("text", text)
            .with("x", at(right))
            .with("y", at(TOP + 4.0 + LINE * n as f64))
            .class("name end");
        content.push(Element::new("g").class(style.class()).child(text));
    }
    Drawing {
        height: bottom + 4.0 + 2.0 * LINE + 6.0,
        title: chart.title.clone(),
        description: chart.description.clone(),
        content,
    }
}

fn curve(line: &Line, x: &Scale, y: &Scale) -> Element {
    let mut path = String::new();
    let mut pen_down = false;
    for (px, py) in &line.points {
        let Some(py) = py else {
            pen_down = false;
            continue;
        };
        path.push(if pen_down { 'L' } else { 'M' });
        let _ = write!(path, "{} {}", at(x.at(*px)), at(y.at(*py)));
        pen_down = true;
    }
    let group = Element::new("g").class(line.style.class());
    if path.is_empty() {
        return group;
    }
    let group = group
        .child(Element::new("path").class("curve").with("d", path))
        .children(whiskers(line, x, y));
    let shown: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter_map(|(px, py)| Some((*px, (*py)?)))
        .collect();
    let every = if line.every_marker {
        1
    } else {
        shown.len().div_ceil(MARKERS).max(1)
    };
    // markers of different series stand at different places
    let first = if line.every_marker {
        0
    } else {
        (every * (line.style.number() % 4) / 4 + every / 8).min(shown.len() - 1)
    };
    let marked = shown.iter().skip(first).step_by(every);
    group.children(marked.map(|(px, py)| line.style.marker(x.at(*px), y.at(*py), 3.6)))
}

/// The intervals around the points of a curve.
fn whiskers(line: &Line, x: &Scale, y: &Scale) -> Vec<Element> {
    let spans = line.points.iter().zip(&line.spans);
    let whiskers = spans.filter_map(|((px, _), span)| {
        let (px, [low, high]) = (x.at(*px), (*span)?);
        let path = format!(
            "M{0} {2}h6M{1} {2}V{3}M{0} {3}h6",
            at(px - 3.0),
            at(px),
            at(y.at(low)),
            at(y.at(high))
        );
        Some(Element::new("path").class("whisker").with("d", path))
    });
    whiskers.collect()
}

/// The name beside the end of a curve, with a thin line to it where it had to move.
fn name(series: &Line, end: (f64, f64), right: f64, place: f64) -> Element {
    let lead = line(end.0 + 2.0, end.1, right + 5.0, place).class("lead");
    let marker = series.style.marker(right + 10.0, place, 3.6);
    let text = of_text("text", &series.name)
        .with("x", at(right + 17.0))
        .with("y", at(place + 4.0))
        .class("name");
    Element::new("g")
        .class(series.style.class())
        .children([lead, marker, text])
}

/// Says the last value of each curve, for a description.
pub(in super::super) fn last_values(lines: &[Line], unit: &str) -> String {
    let said: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let last = line.points.iter().rev().find_map(|point| point.1)?;
            Some(format!("{} {}{unit}", line.name, short(last)))
        })
        .collect();
    said.join(", ")
}
