//! Seeded geometric windows: requests and drivers around hot spots of a city, each request with
//! its nearest drivers, cost a noisy travel time.

use std::collections::BTreeMap;

use super::Random;
use kheya_solver::Graph;

/// Shape of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometric {
    requests: usize,
    drivers: usize,
    candidates: usize,
}

/// Side of a grid cell, in metres.
const CELL: f64 = 500.0;

impl Geometric {
    pub(crate) fn new(requests: usize, drivers: usize, candidates: usize) -> Self {
        Self {
            requests,
            drivers,
            candidates,
        }
    }

    /// The window of a seed. Costs are deciseconds; leaving a request costs twice the dearest edge.
    pub(crate) fn graph(self, seed: u64) -> Graph {
        let mut random = Random::new(seed);
        let size = 1000.0 * ((self.requests + self.drivers) as f64).sqrt() / 2.0;
        let spots: Vec<_> = (0..8)
            .map(|_| (random.unit() * size, random.unit() * size))
            .collect();
        let mut points = |count: usize, skew: usize| -> Vec<(f64, f64)> {
            let mut point = || {
                let even = random.unit() < 0.2;
                let spot = (random.unit() * random.unit() * 8.0) as usize;
                let (x, y) = spots[(spot + skew) % 8];
                let spread = if even { size / 2.0 } else { size / 12.0 };
                // The sum of three is close enough to a bell.
                let mut off = || (random.unit() + random.unit() + random.unit() - 1.5) * spread;
                (x + off(), y + off())
            };
            (0..count).map(|_| point()).collect()
        };
        let requests = points(self.requests, 0);
        let drivers = points(self.drivers, 1);
        let grid = Grid::new(&drivers);
        let mut edges = Vec::with_capacity(self.requests * self.candidates);
        for (request, &from) in requests.iter().enumerate() {
            for (driver, metres) in grid.nearest(&drivers, from, self.candidates) {
                let seconds = metres / 7.0 * (0.85 + 0.3 * random.unit()) + 30.0 * random.unit();
                edges.push((request as u32, driver, (seconds * 10.0).round() as i64));
            }
        }
        let unmatched = 2 * edges.iter().map(|edge| edge.2).max().unwrap_or(1);
        let unmatched = vec![unmatched; self.requests];
        Graph::from_edges(self.requests, self.drivers, unmatched, edges).expect("within limits")
    }
}

/// Windows far apart, every other one short of drivers, with interleaved indices.
pub(crate) fn islands(count: usize, size: usize) -> Graph {
    let mut all = Vec::new();
    for island in 0..count {
        let sides = if island % 2 == 0 {
            (size, size / 2)
        } else {
            (size / 2, size)
        };
        let part = Geometric::new(sides.0, sides.1, 12).graph(island as u64);
        let place = |index: u32| index * count as u32 + island as u32;
        all.extend(
            super::edges(&part)
                .into_iter()
                .map(|(i, j, cost)| (place(i), place(j), cost)),
        );
    }
    let nodes = size * count;
    Graph::from_edges(nodes, nodes, vec![9000; nodes], all).expect("within limits")
}

struct Grid(BTreeMap<(i64, i64), Vec<u32>>);

impl Grid {
    fn new(points: &[(f64, f64)]) -> Self {
        let mut cells = BTreeMap::<_, Vec<u32>>::new();
        for (index, &point) in points.iter().enumerate() {
            cells.entry(cell(point)).or_default().push(index as u32);
        }
        Self(cells)
    }

    /// About the nearest `count` points: those of rings of cells until there are enough.
    fn nearest(&self, points: &[(f64, f64)], from: (f64, f64), count: usize) -> Vec<(u32, f64)> {
        let (cx, cy) = cell(from);
        let mut found = Vec::new();
        for radius in 0..40 {
            for x in cx - radius..=cx + radius {
                for y in cy - radius..=cy + radius {
                    if (x - cx).abs().max((y - cy).abs()) == radius {
                        found.extend(self.0.get(&(x, y)).into_iter().flatten().copied());
                    }
                }
            }
            if found.len() >= count {
                break;
            }
        }
        let metres = |index: u32| {
            let (x, y) = points[index as usize];
            ((x - from.0) * (x - from.0) + (y - from.1) * (y - from.1)).sqrt()
        };
        let mut found: Vec<_> = found
            .into_iter()
            .map(|index| (index, metres(index)))
            .collect();
        found.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        found.truncate(count);
        found
    }
}

fn cell((x, y): (f64, f64)) -> (i64, i64) {
    ((x / CELL).floor() as i64, (y / CELL).floor() as i64)
}
