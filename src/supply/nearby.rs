//! Who is within a radius of a place.
//!
//! Two searches with the same answer: a scan of every car, the faster one while cars are few, and
//! H3 k-rings around the place. The rings over-cover; the distance decides in both.

use std::ops::Range;

use h3o::CellIndex;
use rustc_hash::FxHashMap;

use super::Position;
use crate::domain::{SpherePoint, haversine_of_km};

/// A car found: its index in the list given to [`Nearby::new`], and the haversine of its distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Index of the car.
    pub index: u32,
    /// Haversine of the distance: it rises with the distance and costs no arc sine.
    pub haversine: f64,
}

/// The cars of one moment, searchable by radius.
pub struct Nearby {
    points: Vec<SpherePoint>,
    rings: Option<Rings>,
}

/// Cars sorted by cell, and where each cell's cars lie.
struct Rings {
    by_cell: Vec<u32>,
    cells: FxHashMap<CellIndex, Range<u32>>,
}

/// Below this many searches × cars a scan costs less than building the index (a scanned car costs
/// about 2 ns, an indexed one about 100 ns once, and then a search about 15 ns a cell).
const SCAN_WORK: usize = 1 << 19;

/// Least distance between the centres of neighbouring cells of resolution 8, in km. The projection
/// shrinks cells from 1.01 km at the centre of an icosahedron's face to 0.64 km towards its vertices.
const MIN_CELL_SPACING_KM: f64 = 0.6;

impl Nearby {
    /// Prepares `positions` for about `searches` searches.
    pub fn new(positions: impl ExactSizeIterator<Item = Position>, searches: usize) -> Self {
        let indexed = positions.len().saturating_mul(searches) > SCAN_WORK;
        Self::with_index(positions, indexed)
    }

    fn with_index(positions: impl ExactSizeIterator<Item = Position>, indexed: bool) -> Self {
        let mut points = Vec::with_capacity(positions.len());
        let mut by_cell = Vec::new();
        for (index, position) in positions.enumerate() {
            points.push(position.sphere());
            if indexed {
                by_cell.push((position.cell(), index as u32));
            }
        }
        let rings = indexed.then(|| Rings::new(by_cell));
        Self { points, rings }
    }

    /// Number of cars.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no car.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Puts into `found` the cars within `radius_km` of `from` that `keep` lets through, in no
    /// particular order.
    pub fn within(
        &self,
        from: &Position,
        radius_km: f64,
        mut keep: impl FnMut(u32) -> bool,
        found: &mut Vec<Neighbour>,
    ) {
        found.clear();
        let reach = haversine_of_km(radius_km);
        let centre = from.sphere();
        let mut look = |index: u32| {
            let haversine = centre.haversine(self.points[index as usize]);
            if haversine <= reach && keep(index) {
                found.push(Neighbour { index, haversine });
            }
        };
        match &self.rings {
            Some(rings) => rings.visit(from.cell(), radius_km, look),
            None => (0..self.points.len() as u32).for_each(&mut look),
        }
    }
}

impl Rings {
    fn new(mut by_cell: Vec<(CellIndex, u32)>) -> Self {
        by_cell.sort_unstable();
        let mut cells: FxHashMap<CellIndex, Range<u32>> = FxHashMap::default();
        for (at, &(cell, _)) in by_cell.iter().enumerate() {
            let at = at as u32;
            cells.entry(cell).or_insert(at..at).end = at + 1;
        }
        Self {
            by_cell: by_cell.into_iter().map(|(_, index)| index).collect(),
            cells,
        }
    }

    fn visit(&self, centre: CellIndex, radius_km: f64, mut look: impl FnMut(u32)) {
        let k = rings_covering(radius_km);
        let disk_cells = 3 * u64::from(k) * (u64::from(k) + 1) + 1;
        if disk_cells > self.cells.len() as u64 {
            // fewer occupied cells than the disk has: look at them all
            self.by_cell.iter().copied().for_each(look);
            return;
        }
        for cell in centre.grid_disk::<Vec<_>>(k) {
            if let Some(range) = self.cells.get(&cell) {
                for &index in &self.by_cell[range.start as usize..range.end as usize] {
                    look(index);
                }
            }
        }
    }
}

/// Rings of cells around a place's own cell that surely cover everything within `radius_km` of it.
///
/// A disk of k rings is a hexagon whose inner radius is (k·√3/2 + 1/2)·s for a spacing s between
/// centres; the place lies up to s/√3 from its cell's centre.
fn rings_covering(radius_km: f64) -> u32 {
    let needed = radius_km / MIN_CELL_SPACING_KM + 1.0 / 3.0_f64.sqrt() - 0.5;
    (needed * 2.0 / 3.0_f64.sqrt()).ceil() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Place;

    fn position(lat: f64, lng: f64) -> Position {
        Position::new(Place::new(lat, lng).unwrap())
    }

    fn found(nearby: &Nearby, from: &Position, radius_km: f64) -> Vec<u32> {
        let mut out = Vec::new();
        nearby.within(from, radius_km, |i| i % 7 != 3, &mut out);
        let mut indices: Vec<u32> = out.iter().map(|n| n.index).collect();
        indices.sort_unstable();
        indices
    }

    proptest! {
        /// Everywhere on earth, poles, date line and the pentagons' neighbourhood included: cars all
        /// around at every distance up to beyond the radius.
        #[test]
        fn rings_find_what_a_scan_finds(
            lat in -89.9..89.9f64, lng in -180.0..180.0f64, radius_km in 0.2..9.0f64,
            offsets in prop::collection::vec((0.0..1.2f64, 0.0..std::f64::consts::TAU), 400..900),
        ) {
            let from = position(lat, lng);
            let cars: Vec<Position> = offsets.iter().map(|&(share, bearing)| {
                let angle = share * radius_km / 111.195;
                let dlng = angle * libm::sin(bearing) / libm::cos(lat.to_radians()).max(1e-3);
                let lng = (lng + dlng + 540.0).rem_euclid(360.0) - 180.0;
                position((lat + angle * libm::cos(bearing)).clamp(-90.0, 90.0), lng)
            }).collect();
            let scan = Nearby::with_index(cars.iter().copied(), false);
            let rings = Nearby::with_index(cars.iter().copied(), true);
            prop_assert_eq!(found(&scan, &from, radius_km), found(&rings, &from, radius_km));
        }
    }

    /// The ring bound on its own (a search over few occupied cells never uses the rings): every
    /// point within the radius lies in a cell of the disk, also where cells are smallest.
    #[test]
    fn the_disk_covers_the_radius_where_cells_are_smallest() {
        let pentagons = CellIndex::base_cells().filter(|c| c.is_pentagon());
        let mut checked = 0;
        for pentagon in pentagons {
            let centre: h3o::LatLng = pentagon.into();
            for step in 0..40 {
                let away = f64::from(step) * 0.35;
                let lat = (centre.lat() + away * 0.1).clamp(-89.0, 89.0);
                let lng = (centre.lng() + away * 0.13 + 540.0).rem_euclid(360.0) - 180.0;
                let from = position(lat, lng);
                for radius_km in [0.3, 2.0, 4.0, 7.0] {
                    let disk: std::collections::HashSet<CellIndex> = from
                        .cell()
                        .grid_disk::<Vec<_>>(rings_covering(radius_km))
                        .into_iter()
                        .collect();
                    for bearing in 0..60 {
                        let bearing = f64::from(bearing) * std::f64::consts::TAU / 60.0;
                        let angle = radius_km * 0.9999 / 111.195;
                        let dlng = angle * libm::sin(bearing) / libm::cos(lat.to_radians());
                        let to_lng = (lng + dlng + 540.0).rem_euclid(360.0) - 180.0;
                        let to = position(
                            (lat + angle * libm::cos(bearing)).clamp(-90.0, 90.0),
                            to_lng,
                        );
                        if from.distance_km(&to) <= radius_km {
                            assert!(disk.contains(&to.cell()), "{from:?} {to:?} {radius_km}");
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert!(
            checked > 50_000,
            "only {checked} points were within the radius"
        );
    }
}
