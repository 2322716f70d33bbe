//! Expected requests as single ones, spread evenly.
//!
//! Drawn at random, a minute's requests would lie in clumps that say nothing of where the next ones
//! come from. They are taken at even steps instead: cells in their H3 order, which runs through
//! neighbours, each as long as its expected number; every whole step a request (systematic sampling,
//! Madow & Madow 1944). So any run of cells gets its expected number to within one. Instants follow
//! the golden ratio, which spreads those of neighbours over the time ahead.

use h3o::{CellIndex, LatLng, Resolution};

use crate::{
    decision::Phantom,
    domain::{Draw, DurationMs, Place, UnixMs},
    supply::Position,
};

/// A request's place within its cell: the middle of one of its 49 parts at this resolution.
const PLACE_RESOLUTION: Resolution = Resolution::Eleven;

/// Fraction of the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// Decimals of a degree that a place keeps: a tenth of a metre.
const DEGREE_PARTS: f64 = 1e6;

/// What is expected from one instant to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    /// Cells, rising.
    pub(super) cells: &'a [CellIndex],
    /// Expected requests of each.
    pub(super) by_cell: &'a [f64],
    /// After this instant.
    pub(super) from: UnixMs,
    /// Up to this one.
    pub(super) to: UnixMs,
}

/// As many requests as are expected, to within one; which ones depends on the draw.
pub(super) fn spread(expected: Expected<'_>, draw: Draw) -> Vec<Phantom> {
    let ahead_s = (expected.to - expected.from).as_seconds();
    // one at `from` itself would be taken for a past request
    let first = expected.from + DurationMs::new(1);
    let mut phantoms = Vec::new();
    let mut next = draw.unit_f64();
    let mut instant = draw.number(1).unit_f64();
    let mut sum = 0.0;
    for (&cell, &here) in expected.cells.iter().zip(expected.by_cell) {
        sum += here;
        while next < sum {
            next += 1.0;
            instant = (instant + GOLDEN).fract();
            let part = draw.number(phantoms.len() as u64 + 2);
            let at = expected.from + DurationMs::from_seconds(ahead_s * instant);
            phantoms.extend(place_in(cell, part).map(|place| Phantom {
                at_ms: at.max(first),
                pickup: Position::new(place),
            }));
        }
    }
    phantoms
}

/// A place in a cell.
fn place_in(cell: CellIndex, draw: Draw) -> Option<Place> {
    let parts = cell.children_count(PLACE_RESOLUTION);
    let part = cell.child_at(draw.below(parts as usize) as u64, PLACE_RESOLUTION)?;
    let middle = LatLng::from(part);
    let rounded = |degrees: f64| (degrees * DEGREE_PARTS).round() / DEGREE_PARTS;
    Place::new(rounded(middle.lat()), rounded(middle.lng())).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::demand::counts::MODEL_RESOLUTION;

    fn cells(count: usize) -> Vec<CellIndex> {
        let point = LatLng::new(40.75, -73.98).unwrap();
        let region = point.to_cell(Resolution::Four);
        region.children(MODEL_RESOLUTION).take(count).collect()
    }

    fn cell_of(phantom: &Phantom) -> CellIndex {
        let place = phantom.pickup.place();
        let point = LatLng::new(place.lat(), place.lng()).unwrap();
        let part = point.to_cell(PLACE_RESOLUTION);
        part.parent(MODEL_RESOLUTION).unwrap()
    }

    proptest! {
        #[test]
        fn every_run_of_cells_gets_what_is_expected_of_it_to_within_one(
            by_cell in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.2_f64, 0.0..9.0_f64], 0..60),
            ahead_ms in 1..600_000_i64,
            seed in any::<u64>(),
        ) {
            let cells = cells(by_cell.len());
            let from = UnixMs::new(1_704_067_200_000);
            let to = from + DurationMs::new(ahead_ms);
            let expected = Expected { cells: &cells, by_cell: &by_cell, from, to };
            let draw = Draw::new(seed, "test");
            let phantoms = spread(expected, draw);
            prop_assert_eq!(&phantoms, &spread(expected, draw));
            let drawn: Vec<f64> = cells
                .iter()
                .map(|cell| phantoms.iter().filter(|phantom| cell_of(phantom) == *cell).count() as f64)
                .collect();
            prop_assert_eq!(drawn.iter().sum::<f64>() as usize, phantoms.len());
            for start in 0..cells.len() {
                let (mut wanted, mut got) = (0.0, 0.0);
                for (expected, drawn) in by_cell[start..].iter().zip(&drawn[start..]) {
                    wanted += expected;
                    got += drawn;
                    prop_assert!((wanted - got).abs() < 1.0 + 1e-9, "{wanted} {got}");
                }
            }
            for phantom in &phantoms {
                prop_assert!(from < phantom.at_ms && phantom.at_ms <= to);
            }
        }
    }

    #[test]
    fn a_cell_s_requests_lie_all_over_it_and_all_over_the_time_ahead() {
        let cells = cells(1);
        let from = UnixMs::new(0);
        let to = from + DurationMs::new(60_000);
        let expected = Expected {
            cells: &cells,
            by_cell: &[200.0],
            from,
            to,
        };
        let phantoms = spread(expected, Draw::new(1, "test"));
        assert_eq!(phantoms.len(), 200);
        let mut places: Vec<(u64, u64)> = phantoms
            .iter()
            .map(|phantom| phantom.pickup.place())
            .map(|place| (place.lat().to_bits(), place.lng().to_bits()))
            .collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 40, "{} parts of 49", places.len());
        let mut instants: Vec<i64> = phantoms.iter().map(|p| p.at_ms.get()).collect();
        instants.sort_unstable();
        let gaps = instants.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max().unwrap() < 1_000, "{instants:?}");
    }

    #[test]
    fn no_phantom_is_of_the_instant_itself() {
        let cells = cells(1);
        for ahead_ms in [0, 1, 2] {
            let from = UnixMs::new(1_000);
            let expected = Expected {
                cells: &cells,
                by_cell: &[50.0],
                from,
                to: from + DurationMs::new(ahead_ms),
            };
            let phantoms = spread(expected, Draw::new(1, "test"));
            assert_eq!(phantoms.len(), 50);
            assert!(phantoms.iter().all(|phantom| phantom.at_ms > from));
        }
    }
}
