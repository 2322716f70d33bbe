//! Differences with their intervals, one below the other, around a line that stands for none.

use super::{
    super::{
        figures::at,
        markup::{Element, of_text},
    },
    axis::{self, LINE},
    plot::{Drawing, WIDTH},
    scale::{Scale, round_span},
    series::Style,
};

/// A difference.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Difference {
    /// What is compared, and what the comparison says.
    pub(in super::super) name: String,
    /// The difference.
    pub(in super::super) value: f64,
    /// Its interval, where there is one.
    pub(in super::super) interval: Option<[f64; 2]>,
    /// Its look.
    pub(in super::super) style: Style,
}

const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH - 16.0;
const TOP: f64 = 4.0;
const ROW: f64 = 2.0 * LINE + 12.0;

/// Draws differences; `unit` says which side is better.
pub(in super::super) fn intervals(
    title: &str,
    description: &str,
    unit: &str,
    differences: &[Difference],
) -> Drawing {
    let ends = differences.iter().flat_map(|one| {
        let [low, high] = one.interval.unwrap_or([one.value; 2]);
        [low, high, one.value]
    });
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let (low, high) = round_span(low, high, 4);
    let x = Scale::new(low, high, LEFT, RIGHT);
    let bottom = TOP + ROW * differences.len() as f64;
    let ticks = axis::round_ticks(&x, 4);
    let zero = x.at(0.0);
    let grid = ticks
        .iter()
        .map(|(tick, _)| axis::line(*tick, TOP + LINE + 2.0, *tick, bottom).class("grid"));
    let mut content = vec![
        Element::new("g").class("axis").children(grid),
        axis::line(zero, TOP + LINE + 2.0, zero, bottom).class("mark-line"),
    ];
    for (n, one) in differences.iter().enumerate() {
        let top = TOP + ROW * n as f64;
        let y = top + LINE + 10.0;
        let name = of_text("text", &one.name)
            .with("x", at(LEFT))
            .with("y", at(top + LINE - 2.0))
            .class("strong");
        let mut group = Element::new("g").class(one.style.class());
        if let Some([low, high]) = one.interval {
            let path = format!(
                "M{0} {2}v8m0 -4H{1}m0 -4v8",
                at(x.at(low)),
                at(x.at(high)),
                at(y - 4.0)
            );
            group = group.child(Element::new("path").class("whisker").with("d", path));
        }
        group = group.child(one.style.marker(x.at(one.value), y, 4.4));
        content.extend([name, group]);
    }
    content.push(axis::horizontal(&ticks, (LEFT, RIGHT), bottom, unit));
    Drawing {
        height: bottom + 4.0 + 2.0 * LINE + 6.0,
        title: title.into(),
        description: description.into(),
        content,
    }
}
