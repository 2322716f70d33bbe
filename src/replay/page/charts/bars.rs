//! Horizontal bars of stacked parts, each with its name and its sum.

use super::{
    super::{
        figures::{at, short},
        markup::{Element, of_text},
    },
    axis::{self, LINE},
    plot::{Drawing, WIDTH},
    scale::{Scale, round_up},
};

/// A part of a bar: a class that sets its filling, and its length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Part {
    /// Class of the style sheet.
    pub(in super::super) class: &'static str,
    /// Its length in the unit of the axis.
    pub(in super::super) value: f64,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct StackedBar {
    /// Its name, above it.
    pub(in super::super) name: String,
    /// Its figure, beside its end.
    pub(in super::super) figure: String,
    /// Its parts from the left.
    pub(in super::super) parts: Vec<Part>,
}

/// Room at the right for the figure beside the longest bar.
const FIGURES: f64 = 64.0;
const BAR: f64 = 14.0;
const LEFT: f64 = 4.0;

/// Draws bars.
pub(in super::super) fn stacked_bars(
    title: &str,
    description: &str,
    unit: &str,
    bars: &[StackedBar],
) -> Drawing {
    let length = |bar: &StackedBar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let most = bars.iter().map(length).fold(0.0, f64::max);
    let right = WIDTH - FIGURES;
    let x = Scale::new(0.0, round_up(most, 4), LEFT, right);
    let row = LINE + BAR + 8.0;
    let bottom = 4.0 + row * bars.len() as f64;
    let ticks: Vec<(f64, String)> = axis::round_ticks(&x, 4);
    let grid = ticks
        .iter()
        .map(|(tick, _)| axis::line(*tick, 4.0, *tick, bottom).class("grid"));
    let mut content = vec![Element::new("g").class("axis").children(grid)];
    for (n, bar) in bars.iter().enumerate() {
        let top = 4.0 + row * n as f64;
        content.push(
            of_text("text", &bar.name)
                .with("x", at(LEFT))
                .with("y", at(top + LINE - 4.0))
                .class("strong"),
        );
        let mut from = 0.0;
        for part in &bar.parts {
            let (start, end) = (x.at(from), x.at(from + part.value));
            from += part.value;
            let rect = Element::new("rect")
                .with("x", at(start))
                .with("y", at(top + LINE + 1.0))
                .with("width", at((end - start).max(0.0)))
                .with("height", at(BAR))
                .class(format_args!("bar {}", part.class));
            content.push(rect.child(of_text("title", short(part.value))));
        }
        content.push(
            of_text("text", &bar.figure)
                .with("x", at(x.at(from) + 6.0))
                .with("y", at(top + LINE + BAR - 2.0))
                .class("strong"),
        );
    }
    content.push(axis::horizontal(&ticks, (LEFT, right), bottom, unit));
    Drawing {
        height: bottom + 4.0 + 2.0 * LINE + 6.0,
        title: title.into(),
        description: description.into(),
        content,
    }
}
