//! The cells of a map: which are shown, how large, where, and in which class of each measure.

use std::collections::BTreeMap;

use h3o::{CellIndex, LatLng, Resolution};

use super::collect::{CellBins, CellRun, Collected};

/// More cells than this would be specks on a phone.
const MOST_CELLS: usize = 420;
/// With fewer requests than this a cell's share or mean is chance.
pub(super) const FEW: u32 = 10;
/// Classes of a measure.
pub(super) const CLASSES: usize = 5;
/// Share of the demand that may lie beyond each edge of the map, so that a lone trip to the next
/// town does not shrink the city to a spot.
const BEYOND: f64 = 0.004;

/// A map ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Atlas {
    /// Resolution of the cells.
    pub(super) resolution: Resolution,
    /// The cells shown, in the order of their index.
    pub(super) cells: Vec<CellBins>,
    /// Requests in cells that lie beyond its edges.
    pub(super) requests_beyond: u64,
    /// Upper ends of the classes of each measure but the last, rising.
    pub(super) breaks: BTreeMap<Measure, Vec<f64>>,
}

/// What a map shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// Requests of a cell.
    Demand,
    /// Per cent of them that got no car.
    Unserved,
    /// Mean pickup ETA of the others, in seconds.
    Pickup,
}

impl Measure {
    /// All, in the order they are offered.
    pub(super) const ALL: [Self; 3] = [Self::Demand, Self::Unserved, Self::Pickup];

    /// Its letter in the classes of the style sheet.
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Demand => 'd',
            Self::Unserved => 'u',
            Self::Pickup => 'p',
        }
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Demand => "Demand",
            Self::Unserved => "Unserved",
            Self::Pickup => "Mean pickup",
        }
    }

    /// Its unit.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Demand => "requests a cell",
            Self::Unserved => "% of requests without a car",
            Self::Pickup => "seconds to the pickup",
        }
    }

    /// Its value in a cell under a run; nothing where that would be chance.
    pub(super) fn of(self, cell: &CellBins, run: usize) -> Option<f64> {
        if self == Self::Demand {
            return Some(f64::from(cell.requests));
        }
        let CellRun { matched, eta_s } = *cell.runs.get(run)?;
        match self {
            Self::Unserved if cell.requests >= FEW => {
                Some(100.0 * f64::from(cell.requests - matched) / f64::from(cell.requests))
            }
            Self::Pickup if matched >= FEW => Some(eta_s / f64::from(matched)),
            _ => None,
        }
    }
}

impl Atlas {
    /// Chooses the finest cells of which not too many are needed, and classes that are the same for
    /// every run.
    pub(super) fn of(collected: &Collected) -> Option<Self> {
        let finest = collected.cells.first()?.cell.resolution();
        let mut cells = collected.cells.clone();
        let mut resolution = finest;
        let (cells, requests_beyond) = loop {
            let (shown, beyond) = within_edges(cells);
            if shown.len() <= MOST_CELLS {
                break (shown, beyond);
            }
            let Some(coarser) = resolution.pred() else {
                break (shown, beyond);
            };
            resolution = coarser;
            cells = coarsened(&collected.cells, resolution);
        };
        let runs = collected.runs.len();
        let breaks = Measure::ALL.map(|measure| {
            let runs = if measure == Measure::Demand { 1 } else { runs };
            let values = (0..runs)
                .flat_map(|run| cells.iter().filter_map(move |cell| measure.of(cell, run)));
            let breaks = if measure == Measure::Demand {
                steps_of_four(values.fold(0.0, f64::max))
            } else {
                class_breaks(values.collect())
            };
            (measure, breaks)
        });
        Some(Self {
            resolution,
            cells,
            requests_beyond,
            breaks: breaks.into(),
        })
    }

    /// The class of a value, from 1; more is higher.
    pub(super) fn class_of(&self, measure: Measure, value: f64) -> usize {
        let breaks = self.breaks.get(&measure);
        1 + breaks.map_or(0, |breaks| {
            breaks.iter().filter(|end| value >= **end).count()
        })
    }
}

/// Upper ends of classes that each reach four times further: demand falls off like that from the
/// middle of a city outwards.
fn steps_of_four(most: f64) -> Vec<f64> {
    let mut breaks = Vec::new();
    for n in (1..CLASSES).rev() {
        let end = two_digits(most / libm::pow(4.0, n as f64));
        if end >= 2.0 {
            breaks.push(end);
        }
    }
    breaks
}

/// Upper ends of classes that hold about as many values each, on round values.
fn class_breaks(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let mut breaks: Vec<f64> = Vec::new();
    for n in 1..CLASSES {
        let Some(value) = values.get(values.len() * n / CLASSES) else {
            break;
        };
        let round = two_digits(*value);
        let least = values.first().copied().unwrap_or(0.0);
        if round > breaks.last().copied().unwrap_or(least) {
            breaks.push(round);
        }
    }
    breaks
}

/// A value rounded to two digits.
fn two_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let power = libm::pow(10.0, libm::log10(value).floor() - 1.0);
    // below ten whole numbers are round enough
    let power = if value < 10.0 { power.max(0.1) } else { power };
    (value / power).round() * power
}

/// Sums cells into their parents.
fn coarsened(cells: &[CellBins], resolution: Resolution) -> Vec<CellBins> {
    let mut parents: BTreeMap<CellIndex, CellBins> = BTreeMap::new();
    for bins in cells {
        let Some(parent) = bins.cell.parent(resolution) else {
            continue;
        };
        let sum = parents.entry(parent).or_insert_with(|| CellBins {
            cell: parent,
            requests: 0,
            runs: vec![CellRun::default(); bins.runs.len()],
        });
        sum.requests += bins.requests;
        for (sum, run) in sum.runs.iter_mut().zip(&bins.runs) {
            sum.matched += run.matched;
            sum.eta_s += run.eta_s;
        }
    }
    parents.into_values().collect()
}

/// The cells within the edges of the map, and the requests beyond them.
fn within_edges(cells: Vec<CellBins>) -> (Vec<CellBins>, u64) {
    let middle = cells
        .first()
        .map_or(0.0, |bins| LatLng::from(bins.cell).lng());
    let span = |coordinate: &dyn Fn(LatLng) -> f64| {
        let mut places: Vec<(f64, u32)> = cells
            .iter()
            .map(|bins| (coordinate(bins.cell.into()), bins.requests))
            .collect();
        places.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = places.iter().map(|place| f64::from(place.1)).sum();
        let edge = |share: f64| {
            let mut sum = 0.0;
            let found = places.iter().find(|place| {
                sum += f64::from(place.1);
                sum >= share * total
            });
            found.or(places.last()).map_or(0.0, |place| place.0)
        };
        edge(BEYOND)..=edge(1.0 - BEYOND)
    };
    let lats = span(&|at| at.lat());
    let lngs = span(&|at| around(at.lng(), middle));
    let (shown, beyond): (Vec<_>, Vec<_>) = cells.into_iter().partition(|bins| {
        let at = LatLng::from(bins.cell);
        lats.contains(&at.lat()) && lngs.contains(&around(at.lng(), middle))
    });
    let requests = beyond.iter().map(|bins| u64::from(bins.requests)).sum();
    (shown, requests)
}

/// A longitude within half a turn of another, so that no city is cut in two by the date line.
pub(super) fn around(lng: f64, middle: f64) -> f64 {
    middle + (lng - middle + 540.0).rem_euclid(360.0) - 180.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_round_and_rise() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(class_breaks(values), [200.0, 400.0, 600.0, 800.0]);
        assert_eq!(class_breaks(vec![7.0; 9]), Vec::<f64>::new());
        assert_eq!(class_breaks(vec![]), Vec::<f64>::new());
        assert_eq!(steps_of_four(2199.0), [8.6, 34.0, 140.0, 550.0]);
        assert_eq!(steps_of_four(20.0), [5.0]);
        let mostly_zero = [vec![0.0; 50], vec![12.34; 50]].concat();
        assert_eq!(class_breaks(mostly_zero), [12.0]);
    }

    #[test]
    fn a_longitude_is_taken_the_short_way_round() {
        assert!((around(-179.0, 179.0) - 181.0).abs() < 1e-9);
        assert!((around(10.0, 12.0) - 10.0).abs() < 1e-9);
    }
}
