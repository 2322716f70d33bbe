//! How series are told apart.

use super::super::{figures::at, markup::Element};
use crate::replay::Policy;

/// The look of a series: a class that sets colour and dash, and a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Style(usize);

/// Classes of the style sheet, by style.
const CLASSES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

impl Style {
    /// The same look for a rule in every chart.
    pub(in super::super) fn of_policy(policy: Policy) -> Self {
        Self(Policy::ALL.iter().position(|p| *p == policy).unwrap_or(0))
    }

    /// The look of the `n`th of other series; it comes again after eight.
    pub(in super::super) const fn nth(n: usize) -> Self {
        Self(n % CLASSES.len())
    }

    /// Its class.
    pub(in super::super) const fn class(self) -> &'static str {
        CLASSES[self.0]
    }

    /// Its number, for offsets that keep markers of series apart.
    pub(in super::super) const fn number(self) -> usize {
        self.0
    }

    /// Its marker around a point.
    pub(in super::super) fn marker(self, x: f64, y: f64, size: f64) -> Element {
        let points = |corners: &[(f64, f64)]| {
            let list: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{},{}", at(x + dx * size), at(y + dy * size)))
                .collect();
            Element::new("polygon").with("points", list.join(" "))
        };
        let marker = match self.0 % 4 {
            0 => Element::new("circle")
                .with("cx", at(x))
                .with("cy", at(y))
                .with("r", at(size)),
            1 => points(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => points(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            _ => points(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        };
        // the second four are hollow
        let class = if self.0 < 4 { "mark" } else { "mark hollow" };
        marker.class(class)
    }
}
