//! The settings of a sweep as curves: one value runs along the axis, the others tell the curves
//! apart.

use super::super::{
    charts::{Line, Style},
    figures::short,
};
use crate::replay::{
    Policy,
    tune::{Setting, SweepRow},
};

/// More curves than this are not told apart; those of the least rider cost are shown.
const MOST_CURVES: usize = 5;
/// Looks that no rule has.
const LOOKS: [usize; MOST_CURVES] = [0, 4, 5, 6, 7];

/// A value that is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swept {
    /// Length of a window, in seconds.
    Window,
    /// Longest pickup ETA.
    Cap,
    /// Weight of a request's age.
    Weight,
    /// How far ahead drivers are planned, in seconds.
    Plan,
    /// How long past pickups stand for the next, in seconds.
    Demand,
    /// Whether learned demand stands for the next: 1, or 0.
    Learned,
}

impl Swept {
    /// All, the one to run along the axis first.
    const ALL: [Self; 6] = [
        Self::Window,
        Self::Cap,
        Self::Weight,
        Self::Plan,
        Self::Demand,
        Self::Learned,
    ];

    /// Its value in a setting.
    pub(super) fn of(self, setting: &Setting) -> f64 {
        match self {
            Self::Window => setting.window_ms as f64 / 1000.0,
            Self::Cap => setting.max_pickup_eta_s,
            Self::Weight => setting.age_weight,
            Self::Plan => setting.plan_ahead_ms as f64 / 1000.0,
            Self::Demand => setting.demand_ahead_ms as f64 / 1000.0,
            Self::Learned => f64::from(u8::from(setting.learned_demand)),
        }
    }

    /// Its name and unit, below an axis.
    pub(super) const fn axis(self) -> &'static str {
        match self {
            Self::Window => "window, seconds",
            Self::Cap => "longest pickup ETA, seconds",
            Self::Weight => "age weight",
            Self::Plan => "planned ahead, seconds",
            Self::Demand => "demand ahead, seconds",
            Self::Learned => "demand of late, or learned (1)",
        }
    }

    /// Its name and unit, in a sentence.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Window => "window in seconds",
            Self::Cap => "longest pickup ETA in seconds",
            Self::Weight => "age weight",
            Self::Plan => "plan ahead in seconds",
            Self::Demand => "demand ahead in seconds",
            Self::Learned => "learned demand",
        }
    }

    /// A value in words.
    fn say(self, setting: &Setting) -> String {
        let value = short(self.of(setting));
        match self {
            Self::Window => format!("window {value} s"),
            Self::Cap => format!("cap {value} s"),
            Self::Weight => format!("age {value}"),
            Self::Plan => format!("plan {value} s"),
            Self::Demand => format!("demand {value} s"),
            Self::Learned if setting.learned_demand => "learned".into(),
            Self::Learned => "of late".into(),
        }
    }
}

/// The settings of one rule and fleet.
#[derive(Debug, Clone)]
pub(super) struct Curves<'a> {
    /// What runs along the axis.
    pub(super) along: Swept,
    /// Its values, rising.
    pub(super) values: Vec<f64>,
    /// The curves with their names and looks, that of the least rider cost first.
    pub(super) drawn: Vec<(String, Style, Vec<&'a SweepRow>)>,
    /// Curves that are not shown.
    pub(super) left_out: usize,
}

impl<'a> Curves<'a> {
    /// Sorts the rows of one rule and fleet.
    pub(super) fn of(rows: &[&'a SweepRow]) -> Self {
        let swept: Vec<Swept> = Swept::ALL
            .into_iter()
            .filter(|swept| distinct(rows, *swept).len() > 1)
            .collect();
        let along = swept.first().copied().unwrap_or(Swept::Window);
        let others: Vec<Swept> = swept.into_iter().filter(|swept| *swept != along).collect();
        let mut groups: Vec<(String, Vec<&SweepRow>)> = Vec::new();
        for row in rows {
            let said: Vec<String> = others.iter().map(|s| s.say(&row.setting)).collect();
            let name = if said.is_empty() {
                row.setting.policy.to_owned()
            } else {
                said.join(" · ")
            };
            match groups.iter_mut().find(|group| group.0 == name) {
                Some(group) => group.1.push(row),
                None => groups.push((name, vec![row])),
            }
        }
        let least = |rows: &[&SweepRow]| {
            let costs = rows.iter().filter_map(|row| row.rider_cost_s);
            costs.fold(f64::INFINITY, f64::min)
        };
        groups.sort_by(|a, b| least(&a.1).total_cmp(&least(&b.1)));
        let left_out = groups.len().saturating_sub(MOST_CURVES);
        let curves = groups
            .into_iter()
            .zip(LOOKS)
            .map(|((name, mut rows), look)| {
                rows.sort_by(|a, b| along.of(&a.setting).total_cmp(&along.of(&b.setting)));
                (name, Style::nth(look), rows)
            });
        Self {
            along,
            values: distinct(rows, along),
            drawn: curves.collect(),
            left_out,
        }
    }

    /// The curves of a figure of a row.
    pub(super) fn lines(&self, figure: impl Fn(&SweepRow) -> Option<f64>) -> Vec<Line> {
        let lines = self.drawn.iter().map(|(name, style, rows)| Line {
            name: name.clone(),
            style: *style,
            points: rows
                .iter()
                .map(|row| (self.along.of(&row.setting), figure(row)))
                .collect(),
            spans: Vec::new(),
            every_marker: true,
        });
        lines.collect()
    }

    /// A rule beside the swept one as a curve: level, where it has no windows.
    pub(super) fn beside(
        &self,
        policy: Policy,
        rows: &[&SweepRow],
        figure: impl Fn(&SweepRow) -> Option<f64>,
    ) -> Option<Line> {
        let best = |rows: &[&SweepRow]| -> Option<f64> {
            let figures = rows
                .iter()
                .filter_map(|row| Some((row.rider_cost_s?, figure(row)?)));
            figures
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .map(|found| found.1)
        };
        let points: Vec<(f64, Option<f64>)> = if self.along == Swept::Window && policy.has_windows()
        {
            // at each window the rule's own best cap and weight
            self.values
                .iter()
                .map(|value| {
                    let at: Vec<&SweepRow> = rows
                        .iter()
                        .copied()
                        .filter(|row| Swept::Window.of(&row.setting).total_cmp(value).is_eq())
                        .collect();
                    (*value, best(&at))
                })
                .filter(|point| point.1.is_some())
                .collect()
        } else {
            let level = best(rows)?;
            self.values
                .iter()
                .map(|value| (*value, Some(level)))
                .collect()
        };
        (!points.is_empty()).then(|| Line {
            name: policy.name().into(),
            style: Style::of_policy(policy),
            points,
            spans: Vec::new(),
            every_marker: true,
        })
    }

    /// The span of the axis, with a little air.
    pub(super) fn span(&self) -> (f64, f64) {
        let (low, high) = (
            self.values.first().copied().unwrap_or(0.0),
            self.values.last().copied().unwrap_or(1.0),
        );
        let air = ((high - low) * 0.04).max(1e-3);
        (low - air, high + air)
    }

    /// Ticks at the values themselves, as many as have room.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = self.span();
        let room = (high - low) / 11.0;
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for value in &self.values {
            if ticks.last().is_none_or(|last| value - last.0 >= room) {
                ticks.push((*value, short(*value)));
            }
        }
        ticks
    }
}

fn distinct(rows: &[&SweepRow], swept: Swept) -> Vec<f64> {
    let mut values: Vec<f64> = rows.iter().map(|row| swept.of(&row.setting)).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}
