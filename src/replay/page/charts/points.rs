//! Points with their names beside them: what one thing costs in another.

use super::{
    super::{
        figures::at,
        markup::{Element, of_text},
    },
    axis::{self, LINE},
    labels::moved_apart,
    plot::{Drawing, WIDTH},
    scale::{Scale, round_span},
    series::Style,
};

/// A point with a name.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Dot {
    /// Its name.
    pub(in super::super) name: String,
    /// Its look.
    pub(in super::super) style: Style,
    /// Where it lies.
    pub(in super::super) x: f64,
    /// How high it lies.
    pub(in super::super) y: f64,
}

/// Points in one frame.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct PointChart {
    /// What it shows.
    pub(in super::super) title: String,
    /// What is to be seen in it.
    pub(in super::super) description: String,
    /// Unit of the horizontal axis.
    pub(in super::super) x_unit: String,
    /// Unit of the vertical axis.
    pub(in super::super) y_unit: String,
    /// The points.
    pub(in super::super) dots: Vec<Dot>,
    /// Whether a thin line joins the points of a look, in their order.
    pub(in super::super) joined: bool,
}

const LEFT: f64 = 44.0;
const TOP: f64 = 26.0;
const HEIGHT: f64 = 170.0;
/// Room for the names of points at the right.
const NAMES: f64 = 24.0;

/// Draws points.
pub(in super::super) fn point_chart(chart: &PointChart) -> Drawing {
    let (left, right, bottom) = (LEFT, WIDTH - NAMES, TOP + HEIGHT);
    let span = |value: fn(&Dot) -> f64| {
        let values = || chart.dots.iter().map(value);
        let (low, high) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        );
        // a little air around, and zero where it is near
        let air = (high - low) * 0.08;
        let low = if low < high * 0.5 { 0.0 } else { low - air };
        round_span(low, high + air, 4)
    };
    let ((x0, x1), (y0, y1)) = (span(|dot| dot.x), span(|dot| dot.y));
    let x = Scale::new(x0, x1, left, right);
    let y = Scale::new(y0, y1, bottom, TOP);
    let mut content = vec![
        axis::vertical(&y, (left, right), (TOP - 10.0, &chart.y_unit), 4),
        axis::horizontal(
            &axis::round_ticks(&x, 4),
            (left, right),
            bottom,
            &chart.x_unit,
        ),
    ];
    if chart.joined {
        content.extend(joins(chart, &x, &y));
    }
    if chart.joined {
        content.extend(joined_dots(chart, &x, &y));
        return drawing(chart, bottom, content);
    }
    let wanted: Vec<f64> = chart.dots.iter().map(|dot| y.at(dot.y)).collect();
    for (n, dot) in chart.dots.iter().enumerate() {
        let (px, py) = (x.at(dot.x), wanted[n]);
        // the first are the largest, so that one that lies on another is seen on it
        let size = (6.4 - 1.1 * n as f64).max(3.0);
        // names of points that stand close together are moved apart
        let near: Vec<usize> = (0..chart.dots.len())
            .filter(|&m| (x.at(chart.dots[m].x) - px).abs() < 90.0)
            .collect();
        let heights: Vec<f64> = near.iter().map(|&m| wanted[m]).collect();
        let places = moved_apart(&heights, LINE, TOP + 4.0, bottom - 4.0);
        let own = near.iter().position(|&m| m == n).unwrap_or(0);
        let place = places.get(own).copied().unwrap_or(py);
        let to_left = px > f64::midpoint(left, right);
        let (tx, class) = if to_left {
            (px - 9.0, "name end")
        } else {
            (px + 9.0, "name")
        };
        let text = of_text("text", &dot.name)
            .with("x", at(tx))
            .with("y", at(place + 4.0))
            .class(class);
        content.push(
            Element::new("g")
                .class(dot.style.class())
                .child(dot.style.marker(px, py, size))
                .child(text),
        );
    }
    drawing(chart, bottom, content)
}

fn drawing(chart: &PointChart, bottom: f64, content: Vec<Element>) -> Drawing {
    Drawing {
        height: bottom + 4.0 + 2.0 * LINE + 6.0,
        title: chart.title.clone(),
        description: chart.description.clone(),
        content,
    }
}

/// A name where it would stand.
#[derive(Clone, Copy)]
struct Room {
    left: f64,
    right: f64,
    base: f64,
}

impl Room {
    fn overlaps(&self, other: &Self) -> bool {
        let apart = self.right < other.left || other.right < self.left;
        !apart && (self.base - other.base).abs() < LINE - 2.0
    }

    fn covers(&self, (x, y): (f64, f64)) -> bool {
        (self.left - 3.0..=self.right + 3.0).contains(&x)
            && (self.base - 13.0..=self.base + 5.0).contains(&y)
    }
}

/// Points on their joins, each with its name beside it where that covers neither a curve nor
/// another name.
fn joined_dots(chart: &PointChart, x: &Scale, y: &Scale) -> Vec<Element> {
    let drawn = drawn_places(chart, x, y);
    let mut named: Vec<Room> = Vec::new();
    let dots = chart.dots.iter().map(|dot| {
        let (px, py) = (x.at(dot.x), y.at(dot.y));
        let marker = dot.style.marker(px, py, 4.0);
        let group = Element::new("g").class(dot.style.class()).child(marker);
        let width = dot.name.chars().count() as f64 * 7.0;
        let beside = [
            (px - width / 2.0, py - 9.0),
            (px - width / 2.0, py + 19.0),
            (px + 9.0, py + 4.0),
            // at the right edge
            (WIDTH - 2.0 - width, py - 9.0),
            (WIDTH - 2.0 - width, py + 19.0),
            (px - 9.0 - width, py + 4.0),
            (px + 6.0, py - 9.0),
            (px + 6.0, py + 19.0),
            (px - 6.0 - width, py - 9.0),
            (px - 6.0 - width, py + 19.0),
        ];
        let free = beside
            .into_iter()
            .map(|(left, base)| Room {
                left,
                right: left + width,
                base,
            })
            .filter(|room| room.left > LEFT && room.right < WIDTH && room.base > TOP)
            .find(|room| {
                named.iter().all(|other| !room.overlaps(other))
                    && !drawn.iter().any(|place| room.covers(*place))
            });
        let Some(room) = free else {
            return group;
        };
        named.push(room);
        let text = of_text("text", &dot.name)
            .with("x", at(f64::midpoint(room.left, room.right)))
            .with("y", at(room.base))
            .class("name middle");
        group.child(text)
    });
    dots.collect()
}

/// Places along the curves, close enough that no name passes between two.
fn drawn_places(chart: &PointChart, x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let mut places = Vec::new();
    for (n, dot) in chart.dots.iter().enumerate() {
        let here = (x.at(dot.x), y.at(dot.y));
        let next = chart.dots[n + 1..]
            .iter()
            .find(|next| next.style == dot.style);
        let Some(next) = next else {
            places.push(here);
            continue;
        };
        let there = (x.at(next.x), y.at(next.y));
        places.extend((0..40).map(|step| {
            let share = f64::from(step) / 40.0;
            (
                here.0 + share * (there.0 - here.0),
                here.1 + share * (there.1 - here.1),
            )
        }));
    }
    places
}

fn joins(chart: &PointChart, x: &Scale, y: &Scale) -> Vec<Element> {
    let mut looks: Vec<Style> = Vec::new();
    for dot in &chart.dots {
        if !looks.contains(&dot.style) {
            looks.push(dot.style);
        }
    }
    let joins = looks.into_iter().map(|style| {
        let of_look = chart.dots.iter().filter(|dot| dot.style == style);
        let corners: Vec<String> = of_look
            .map(|dot| format!("{} {}", at(x.at(dot.x)), at(y.at(dot.y))))
            .collect();
        let path = Element::new("path").with("d", format_args!("M{}", corners.join("L")));
        Element::new("g")
            .class(style.class())
            .child(path.class("curve"))
    });
    joins.collect()
}
