//! Families of graphs that are known to be hard for one kind of solver or another, and the easy
//! window that they are measured against. All of a size have about the same number of edges.

use kheya_solver::Graph;

use super::Random;
use super::geometric::Geometric;

/// A family of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// A window with cars to spare: the easy one.
    Plenty,
    /// A window with as many requests as cars.
    Balanced,
    /// A window short of cars.
    Short,
    /// A balanced window whose ETAs are whole minutes: ties everywhere.
    Minutes,
    /// `c_ij = i · j` on all pairs, the worst case of the Hungarian method (Machol & Wien 1976).
    MacholWien,
    /// Every request after the same few drivers, worth far more than they cost: prices rise step by
    /// step in an auction (Bertsekas 1988).
    PriceWar,
    /// All pairs at one cost.
    AllEqual,
    /// A chain whose costs double from link to link.
    Doubling,
    /// One driver cheap for all, and a dear one for each.
    OneWanted,
    /// A chain in which the last request moves everybody before it.
    Shifting,
    /// Random pairs at one of two costs.
    TwoValues,
    /// Random pairs at costs of both signs.
    Signed,
    /// Random pairs.
    Sparse,
    /// All pairs at random costs.
    Dense,
    /// Dense and ill-scaled: costs 2^0 to 2^40 at random.
    Scales,
}

impl Family {
    pub(crate) const ALL: [Self; 15] = [
        Self::Plenty,
        Self::Balanced,
        Self::Short,
        Self::Minutes,
        Self::MacholWien,
        Self::PriceWar,
        Self::AllEqual,
        Self::Doubling,
        Self::OneWanted,
        Self::Shifting,
        Self::TwoValues,
        Self::Signed,
        Self::Sparse,
        Self::Dense,
        Self::Scales,
    ];

    /// The name that [`Family::named`] takes.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// A graph of about `edges` edges, the same for the same seed.
    pub(crate) fn graph(self, edges: usize, seed: u64) -> Graph {
        let window = |requests: f64, drivers: f64| {
            let nodes = edges as f64 / 30.0;
            Geometric::new((nodes * requests) as usize, (nodes * drivers) as usize, 30).graph(seed)
        };
        let side = (edges as f64).sqrt() as u32;
        let mut random = Random::new(seed);
        match self {
            Self::Plenty => window(1.0, 2.0),
            Self::Balanced => window(1.0, 1.0),
            Self::Short => window(1.0, 0.4),
            Self::Minutes => {
                let fine = window(1.0, 1.0);
                let (requests, drivers) = (fine.requests() as u32, fine.drivers() as u32);
                let minutes = super::edges(&fine)
                    .into_iter()
                    .map(|(i, j, c)| (i, j, c / 600));
                graph(requests, drivers, minutes)
            }
            Self::MacholWien => pairs(side, side, |i, j| (i64::from(i) + 1) * (i64::from(j) + 1)),
            Self::PriceWar => pairs(edges as u32 / 20, 20, |_, _| random.within(0..=9)),
            Self::AllEqual => pairs(side, side, |_, _| 7),
            Self::Doubling => chain(edges, |link| 1 << (link % 40)),
            Self::OneWanted => {
                let requests = edges as u32 / 2;
                let both = |i| [(i, 0, 1), (i, i + 1, 1000 + i64::from(i))];
                graph(requests, requests + 1, (0..requests).flat_map(both))
            }
            Self::Shifting => {
                let links = edges as u32 / 2;
                let both = |i| [(i, i, 0), (i, i + 1, 1 + i64::from(i % 3))];
                let last = std::iter::once((links, 0, 0));
                graph(links + 1, links + 1, (0..links).flat_map(both).chain(last))
            }
            Self::TwoValues => sparse(edges, seed, |random| {
                [1, 1000][(random.next() % 2) as usize]
            }),
            Self::Signed => sparse(edges, seed, |random| random.within(-1_000_000..=1_000_000)),
            Self::Sparse => sparse(edges, seed, |random| random.within(1..=1_000_000)),
            Self::Dense => pairs(side, side, |_, _| random.within(1..=1_000_000)),
            Self::Scales => pairs(side, side, |_, _| 1 << random.within(0..=40)),
        }
    }
}

/// All pairs.
fn pairs(requests: u32, drivers: u32, mut cost: impl FnMut(u32, u32) -> i64) -> Graph {
    let mut edges = Vec::with_capacity((requests * drivers) as usize);
    for request in 0..requests {
        for driver in 0..drivers {
            edges.push((request, driver, cost(request, driver)));
        }
    }
    graph(requests, drivers, edges)
}

/// Request i with drivers i and i + 1; link 2 i and 2 i + 1 are its edges.
fn chain(edges: usize, cost: impl Fn(u32) -> i64) -> Graph {
    let requests = edges as u32 / 2;
    let both = (0..requests).flat_map(|i| [(i, i, cost(2 * i)), (i, i + 1, cost(2 * i + 1))]);
    graph(requests, requests + 1, both)
}

/// Fifteen random drivers a request, as many drivers as requests.
fn sparse(edges: usize, seed: u64, cost: impl Fn(&mut Random) -> i64) -> Graph {
    let side = edges as u32 / 15;
    let mut random = Random::new(seed);
    let mut drawn = Vec::with_capacity(edges);
    for request in 0..side {
        for _ in 0..15 {
            let driver = random.within(0..=i64::from(side) - 1) as u32;
            drawn.push((request, driver, cost(&mut random)));
        }
    }
    graph(side, side, drawn)
}

/// Leaving a request costs more than ten times the dearest edge.
fn graph(requests: u32, drivers: u32, edges: impl IntoIterator<Item = (u32, u32, i64)>) -> Graph {
    let edges: Vec<_> = edges.into_iter().collect();
    let dearest = edges.iter().map(|edge| edge.2.abs()).max().unwrap_or(0);
    let unmatched = vec![10 * dearest + 1000; requests as usize];
    Graph::from_edges(requests as usize, drivers as usize, unmatched, edges).expect("within limits")
}
