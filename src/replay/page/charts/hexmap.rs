//! A map of H3 cells: real boundaries, equirectangular around the middle, true to scale.

use std::fmt::Write as _;

use h3o::LatLng;

use super::{
    super::{
        atlas::{Atlas, FEW, Measure, around},
        collect::{CellBins, Collected},
        figures::{at, short, whole},
        markup::{Element, of_text},
    },
    plot::{Drawing, WIDTH},
    scale::round_step,
};
use crate::domain::EARTH_RADIUS_KM;

/// Heights that fit a phone and a desktop.
const HEIGHT: std::ops::RangeInclusive<f64> = 220.0..=520.0;
const MARGIN: f64 = 8.0;
/// Cells named by a number on the map.
pub(in super::super) const NAMED: usize = 3;

/// From degrees to the drawing.
struct Projection {
    middle: (f64, f64),
    /// Drawing units for a degree of latitude.
    scale: f64,
    /// How much shorter a degree of longitude is.
    shrink: f64,
    centre: (f64, f64),
    height: f64,
}

impl Projection {
    fn of(cells: &[CellBins]) -> Self {
        let middle_lng = cells.first().map_or(0.0, |c| LatLng::from(c.cell).lng());
        let corners: Vec<(f64, f64)> = cells
            .iter()
            .flat_map(|bins| bins.cell.boundary().to_vec())
            .map(|corner| (corner.lat(), around(corner.lng(), middle_lng)))
            .collect();
        let span = |of: fn(&(f64, f64)) -> f64| {
            let low = corners.iter().map(of).fold(f64::INFINITY, f64::min);
            let high = corners.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
            (low, high)
        };
        let (lats, lngs) = (span(|c| c.0), span(|c| c.1));
        let middle = (f64::midpoint(lats.0, lats.1), f64::midpoint(lngs.0, lngs.1));
        let shrink = libm::cos(middle.0.to_radians()).max(0.01);
        let (tall, wide) = (
            (lats.1 - lats.0).max(1e-6),
            ((lngs.1 - lngs.0) * shrink).max(1e-6),
        );
        let room = WIDTH - 2.0 * MARGIN;
        let scale = (room / wide).min((HEIGHT.end() - 2.0 * MARGIN) / tall);
        let height = (tall * scale + 2.0 * MARGIN).max(*HEIGHT.start());
        Self {
            middle,
            scale,
            shrink,
            centre: (WIDTH / 2.0, height / 2.0),
            height,
        }
    }

    fn place(&self, point: LatLng) -> (f64, f64) {
        let east = around(point.lng(), self.middle.1) - self.middle.1;
        let north = point.lat() - self.middle.0;
        (
            self.centre.0 + east * self.shrink * self.scale,
            self.centre.1 - north * self.scale,
        )
    }

    fn units_a_km(&self) -> f64 {
        self.scale / EARTH_RADIUS_KM.to_radians()
    }
}

/// Draws the cells. Each has a class for every measure and run; the style sheet colours those of the
/// measure and run that are picked.
pub(in super::super) fn hexmap(atlas: &Atlas, collected: &Collected, description: &str) -> Drawing {
    let projection = Projection::of(&atlas.cells);
    let hexes = atlas.cells.iter().map(|bins| {
        Element::new("path")
            .class(classes(atlas, bins))
            .with("d", outline(bins, &projection))
            .child(of_text("title", tip(bins, collected)))
    });
    let mut content = vec![hatching(), Element::new("g").children(hexes)];
    for measure in Measure::ALL {
        for run in 0..runs_of(measure, collected) {
            content.push(numbers(atlas, measure, run, &projection));
        }
    }
    content.push(ruler(&projection));
    Drawing {
        height: projection.height + 24.0,
        title: "Map of demand, unserved riders and pickups by cell".into(),
        description: description.into(),
        content,
    }
}

/// Runs that a measure is shown for: demand is the same for all.
pub(in super::super) fn runs_of(measure: Measure, collected: &Collected) -> usize {
    if measure == Measure::Demand {
        1
    } else {
        collected.runs.len()
    }
}

/// The class of what belongs to one measure and run.
pub(in super::super) fn layer(measure: Measure, run: usize) -> String {
    if measure == Measure::Demand {
        measure.letter().into()
    } else {
        format!("{}{run}", measure.letter())
    }
}

/// The cells with the highest values of a measure, the highest first.
pub(in super::super) fn highest(
    atlas: &Atlas,
    measure: Measure,
    run: usize,
) -> Vec<(&CellBins, f64)> {
    let mut values: Vec<(&CellBins, f64)> = atlas
        .cells
        .iter()
        .filter_map(|bins| Some((bins, measure.of(bins, run)?)))
        .collect();
    values.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cell.cmp(&b.0.cell)));
    values.truncate(NAMED);
    values.retain(|(_, value)| *value > 0.0);
    values
}

/// Where a cell lies, as people write it.
pub(in super::super) fn place_text(bins: &CellBins) -> String {
    let at = LatLng::from(bins.cell);
    format!("{:.3}, {:.3}", at.lat(), at.lng())
}

fn classes(atlas: &Atlas, bins: &CellBins) -> String {
    let mut classes = String::from("hex");
    for measure in Measure::ALL {
        let runs = if measure == Measure::Demand {
            1
        } else {
            bins.runs.len()
        };
        for run in 0..runs {
            if let Some(value) = measure.of(bins, run) {
                let class = atlas.class_of(measure, value);
                let _ = write!(classes, " {}-{class}", layer(measure, run));
            }
        }
    }
    classes
}

fn outline(bins: &CellBins, projection: &Projection) -> String {
    let corners: Vec<String> = bins
        .cell
        .boundary()
        .iter()
        .map(|corner| {
            let (x, y) = projection.place(*corner);
            format!("{} {}", at(x), at(y))
        })
        .collect();
    format!("M{}Z", corners.join("L"))
}

fn tip(bins: &CellBins, collected: &Collected) -> String {
    let mut tip = format!(
        "{}: {} requests",
        place_text(bins),
        whole(u64::from(bins.requests))
    );
    for (n, run) in collected.runs.iter().enumerate() {
        let said = |measure: Measure| measure.of(bins, n).map(short);
        let unserved = said(Measure::Unserved).map(|value| format!("{value} % unserved"));
        let pickup = said(Measure::Pickup).map(|value| format!("pickup {value} s"));
        let parts: Vec<String> = [unserved, pickup].into_iter().flatten().collect();
        if !parts.is_empty() {
            let _ = write!(tip, "; {}: {}", run.policy, parts.join(", "));
        }
    }
    tip
}

/// Numbers on the cells with the highest values.
fn numbers(atlas: &Atlas, measure: Measure, run: usize, projection: &Projection) -> Element {
    let marks = highest(atlas, measure, run)
        .into_iter()
        .enumerate()
        .map(|(n, (bins, _))| {
            let (x, y) = projection.place(bins.cell.into());
            let circle = Element::new("circle")
                .with("cx", at(x))
                .with("cy", at(y))
                .with("r", 8);
            let number = of_text("text", n + 1)
                .with("x", at(x))
                .with("y", at(y + 4.0))
                .class("middle");
            Element::new("g").child(circle).child(number)
        });
    Element::new("g")
        .class(format_args!("numbers on-{}", layer(measure, run)))
        .children(marks)
}

/// The filling of cells with too few requests to say something.
fn hatching() -> Element {
    let pattern = Element::new("pattern")
        .with("id", "few")
        .with("width", 4)
        .with("height", 4)
        .with("patternUnits", "userSpaceOnUse")
        .with("patternTransform", "rotate(45)")
        .child(
            Element::new("line")
                .with("x1", 0)
                .with("y1", 0)
                .with("x2", 0)
                .with("y2", 4)
                .class("hatch"),
        );
    Element::new("defs").child(pattern)
}

/// A ruler of a round length.
fn ruler(projection: &Projection) -> Element {
    let most_km = 90.0 / projection.units_a_km();
    let step = round_step(most_km / 2.0);
    let km = if step * 2.0 <= most_km {
        step * 2.0
    } else {
        step
    };
    let length = km * projection.units_a_km();
    let y = projection.height + 10.0;
    let bar = Element::new("path").class("ruler").with(
        "d",
        format_args!("M{} {}v5h{}v-5", MARGIN, at(y - 5.0), at(length)),
    );
    let text = of_text("text", format_args!("{} km, north is up", short(km)))
        .with("x", at(MARGIN + length + 8.0))
        .with("y", at(y + 2.0))
        .class("unit");
    Element::new("g").child(bar).child(text)
}

/// What the hatching means.
pub(in super::super) fn few_text() -> String {
    format!("fewer than {FEW}: too few to say")
}
