//! Small charts as inline SVG, drawn for a phone's width and scaled up from there.
//!
//! A chart is a picture with a title and a description for those who hear it, and the same figures
//! stand in a table behind it. What tells series apart is never the colour alone: each has a dash, a
//! marker and its name beside it.

mod axis;
mod bars;
mod hexmap;
mod histogram;
mod intervals;
mod labels;
mod lines;
mod plot;
mod points;
mod scale;
mod series;

pub(super) use bars::{Part, StackedBar, stacked_bars};
pub(super) use hexmap::{few_text, hexmap, highest, layer, place_text, runs_of};
pub(super) use histogram::{HistogramChart, histogram};
pub(super) use intervals::{Difference, intervals};
pub(super) use lines::{Line, LineChart, last_values, line_chart};
pub(super) use plot::{Column, Drawing, Figure, Table, behind, figure, svg};
pub(super) use points::{Dot, PointChart, point_chart};
pub(super) use scale::{round_span, round_up};
pub(super) use series::Style;
