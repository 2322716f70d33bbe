//! Axes: a line, ticks on round values, the unit.

use super::{
    super::{
        figures::at,
        markup::{Element, of_text},
    },
    scale::Scale,
};

/// Height of a line of text.
pub(super) const LINE: f64 = 15.0;

/// The vertical axis: horizontal grid lines with their values, and its unit above, at its height.
pub(super) fn vertical(
    scale: &Scale,
    (left, right): (f64, f64),
    (unit_y, unit): (f64, &str),
    count: usize,
) -> Element {
    let mut axis = Element::new("g").class("axis");
    for (tick, label) in scale.labelled_ticks(count) {
        let y = scale.at(tick);
        let class = if tick == 0.0 { "base" } else { "grid" };
        axis = axis.child(line(left, y, right, y).class(class)).child(
            of_text("text", label)
                .with("x", at(left - 5.0))
                .with("y", at(y + 4.0))
                .class("end"),
        );
    }
    axis.child(
        of_text("text", unit)
            .with("x", 0)
            .with("y", at(unit_y))
            .class("unit"),
    )
}

/// The horizontal axis at `y`: ticks where they are given, and the unit below.
pub(super) fn horizontal(
    ticks: &[(f64, String)],
    (left, right): (f64, f64),
    y: f64,
    unit: &str,
) -> Element {
    let mut axis = Element::new("g")
        .class("axis")
        .child(line(left, y, right, y).class("base"));
    for (x, label) in ticks {
        axis = axis.child(line(*x, y, *x, y + 4.0).class("base")).child(
            of_text("text", label)
                .with("x", at(*x))
                .with("y", at(y + 4.0 + LINE - 2.0))
                .class("middle"),
        );
    }
    axis.child(
        of_text("text", unit)
            .with("x", at(f64::midpoint(left, right)))
            .with("y", at(y + 4.0 + 2.0 * LINE))
            .class("middle unit"),
    )
}

/// The ticks of a linear scale.
pub(super) fn round_ticks(scale: &Scale, count: usize) -> Vec<(f64, String)> {
    let ticks = scale.labelled_ticks(count).into_iter();
    ticks.map(|(tick, label)| (scale.at(tick), label)).collect()
}

/// A straight line.
pub(super) fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Element {
    Element::new("line")
        .with("x1", at(x1))
        .with("y1", at(y1))
        .with("x2", at(x2))
        .with("y2", at(y2))
}
