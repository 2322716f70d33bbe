//! The replay's world written once more: plain loops over everything at every instant.
//!
//! The greedy rules have one right answer, which is predicted. Batch may have several optima: there
//! the run's own choices are followed, each window checked to be a best one by trying every matching.

use std::sync::Arc;

use kheya::{
    decision::{DriverSnapshot, PendingRequest},
    domain::{DurationMs, UnixMs},
    replay::{Outcome, Policy, Run, Scenario, WindowRow},
};

use super::naive::{self, Edge, Row};

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Assigned {
        driver: String,
        at_ms: i64,
        eta_s: f64,
    },
    Expired {
        had_candidate: bool,
    },
}

/// The figures of a window that a run records.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) closed_at_ms: i64,
    pub(crate) requests: usize,
    pub(crate) drivers: usize,
    /// Of the rules that search once a window.
    pub(crate) edges: Option<usize>,
    pub(crate) assigned: usize,
    pub(crate) expired: usize,
    pub(crate) total_eta_s: f64,
    /// Of batch, in milliseconds: on greedy-edge and on oldest-first.
    pub(crate) gains_ms: Option<(i64, i64)>,
}

/// A run of the reference.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) ends: Vec<Option<End>>,
    pub(crate) windows: Vec<Window>,
}

struct Car {
    snapshot: DriverSnapshot,
    free_at: UnixMs,
    to: Option<UnixMs>,
}

struct Rider {
    trip: usize,
    left_over: u32,
    had_candidate: bool,
}

struct World<'a> {
    scenario: &'a Scenario,
    cars: Vec<Car>,
    /// When cars come free, for the rule without windows.
    releases: Vec<UnixMs>,
    waiting: Vec<Rider>,
    reference: Reference,
}

/// Runs `policy`, following `run` where batch had a choice.
pub(crate) fn reference(scenario: &Scenario, policy: Policy, run: &Run) -> Reference {
    let cars = scenario.drivers.iter().map(|driver| Car {
        snapshot: DriverSnapshot::clone(&driver.snapshot),
        free_at: driver.from,
        to: driver.to,
    });
    let mut world = World {
        scenario,
        cars: cars.collect(),
        releases: scenario.drivers.iter().map(|driver| driver.from).collect(),
        waiting: Vec::new(),
        reference: Reference {
            ends: vec![None; scenario.trips.len()],
            windows: Vec::new(),
        },
    };
    if policy == Policy::GreedyNow {
        world.at_every_event();
    } else {
        world.at_every_close(policy, run);
    }
    world.reference
}

impl World<'_> {
    fn at_every_close(&mut self, policy: Policy, run: &Run) {
        let window = self.scenario.config.window_ms;
        let mut close = self.scenario.t0;
        let mut next = 0;
        // those who expire where nobody is left to decide for stand in the next row, or the last
        let mut expired = 0;
        while next < self.scenario.trips.len() || !self.waiting.is_empty() {
            close = close + window;
            while next < self.scenario.trips.len() && self.requested_at(next) < close {
                self.waiting.push(Rider {
                    trip: next,
                    left_over: 0,
                    had_candidate: false,
                });
                next += 1;
            }
            expired += self.expire(close);
            if self.waiting.is_empty() {
                continue;
            }
            let requests = self.waiting.len();
            let cars = self.free(close);
            let rows = self.rows(close, &cars);
            let all = rows.iter().map(|row| row.edges.len()).sum();
            let (pairs, edges, gains_ms) = match policy {
                Policy::Batch => {
                    let pairs = self.chosen(run, close);
                    let least = naive::least_objective_by_trying_all_ms(&rows);
                    let batch = naive::objective_ms(&rows, &pairs);
                    assert_eq!(batch, least, "at {close} a better matching exists");
                    let gain = |greedy| naive::objective_ms(&rows, &greedy) - batch;
                    let gains = (
                        gain(naive::least_cost_first(&rows)),
                        gain(naive::oldest_first(&rows)),
                    );
                    (pairs, Some(all), Some(gains))
                }
                Policy::GreedyEdge => (naive::least_eta_first(&rows), Some(all), None),
                Policy::Greedy | Policy::GreedyNow => (self.oldest_first(close), None, None),
            };
            let assigned = pairs.len();
            let total_eta_s = self.settle(close, &rows, &pairs, policy == Policy::Greedy);
            self.reference.windows.push(Window {
                closed_at_ms: close.get(),
                requests,
                drivers: cars.len(),
                edges,
                assigned,
                expired: std::mem::take(&mut expired),
                total_eta_s,
                gains_ms,
            });
        }
        if let Some(last) = self.reference.windows.last_mut() {
            last.expired += expired;
        }
    }

    /// Decides at each arrival and each release; a car sent and free again at once is one more.
    fn at_every_event(&mut self) {
        let mut next = 0;
        loop {
            let arrival = (next < self.scenario.trips.len()).then(|| self.requested_at(next));
            let release = self.releases.iter().min().copied();
            let Some(now) = arrival.into_iter().chain(release).min() else {
                break;
            };
            self.releases.retain(|&at| at > now);
            self.expire(now);
            while next < self.scenario.trips.len() && self.requested_at(next) <= now {
                self.waiting.push(Rider {
                    trip: next,
                    left_over: 0,
                    had_candidate: false,
                });
                next += 1;
            }
            let rows = self.rows(now, &self.free(now));
            let pairs = self.oldest_first(now);
            self.settle(now, &rows, &pairs, true);
        }
        self.expire(UnixMs::new(i64::MAX));
    }

    fn requested_at(&self, trip: usize) -> UnixMs {
        self.scenario.trips[trip].request.requested_at_ms
    }

    fn expire(&mut self, now: UnixMs) -> usize {
        let longest = self.scenario.config.max_wait_ms;
        let (stay, go): (Vec<Rider>, Vec<Rider>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|rider| now - self.requested_at(rider.trip) <= longest);
        self.waiting = stay;
        for rider in &go {
            self.reference.ends[rider.trip] = Some(End::Expired {
                had_candidate: rider.had_candidate,
            });
        }
        go.len()
    }

    /// The cars that may be sent at `now`, where they stand.
    fn free(&self, now: UnixMs) -> Vec<DriverSnapshot> {
        let free = self
            .cars
            .iter()
            .filter(|car| car.free_at <= now && car.to.is_none_or(|to| now <= to));
        free.map(|car| car.snapshot.clone()).collect()
    }

    fn pending(&self, rider: &Rider) -> PendingRequest {
        PendingRequest {
            request: Arc::clone(&self.scenario.trips[rider.trip].request),
            left_over: rider.left_over,
        }
    }

    fn row(&self, rider: &Rider, now: UnixMs, cars: &[&DriverSnapshot]) -> Row {
        let config = &self.scenario.config;
        let pending = self.pending(rider);
        let found = naive::found_edges(config, &pending, cars, now);
        naive::row_of(config, &pending.request, found, now)
    }

    fn rows(&self, now: UnixMs, cars: &[DriverSnapshot]) -> Vec<Row> {
        let cars: Vec<&DriverSnapshot> = cars.iter().collect();
        self.waiting
            .iter()
            .map(|rider| self.row(rider, now, &cars))
            .collect()
    }

    /// Oldest first, the candidates of each searched among the cars that are left.
    fn oldest_first(&self, now: UnixMs) -> naive::Pairs {
        let cars = self.free(now);
        let mut left: Vec<&DriverSnapshot> = cars.iter().collect();
        let mut pairs = naive::Pairs::new();
        for rider in &self.waiting {
            let row = self.row(rider, now, &left);
            if let Some(best) = row.worth().min_by_key(|e| (e.cost_ms, &e.driver)) {
                left.retain(|car| car.id != best.driver);
                pairs.insert(row.request.clone(), best.driver.clone());
            }
        }
        pairs
    }

    /// What the run chose at this close.
    fn chosen(&self, run: &Run, close: UnixMs) -> naive::Pairs {
        let waiting = self.waiting.iter();
        let chosen = waiting.filter_map(|rider| match run.outcomes[rider.trip] {
            Outcome::Assigned { driver, at, .. } if at == close => {
                let request = self.scenario.trips[rider.trip].request.id.clone();
                let driver = &self.scenario.drivers[driver as usize].snapshot.id;
                Some((request, driver.clone()))
            }
            _ => None,
        });
        chosen.collect()
    }

    /// Sends the chosen cars off, leaves the others over; returns the sum of the ETAs.
    ///
    /// A rider whose every candidate went to an older one had no candidate in a rule that searches
    /// anew after each pick (`searches_anew`).
    fn settle(
        &mut self,
        now: UnixMs,
        rows: &[Row],
        pairs: &naive::Pairs,
        searches_anew: bool,
    ) -> f64 {
        let mut total_eta_s = 0.0;
        let mut left: Vec<DriverSnapshot> = self.free(now);
        for (mut rider, row) in std::mem::take(&mut self.waiting).into_iter().zip(rows) {
            let edges: Vec<Edge> = if searches_anew {
                self.row(&rider, now, &left.iter().collect::<Vec<_>>())
                    .edges
            } else {
                row.edges.clone()
            };
            let Some(driver) = pairs.get(&row.request) else {
                rider.had_candidate |= !edges.is_empty();
                rider.left_over += 1;
                self.waiting.push(rider);
                continue;
            };
            left.retain(|car| car.id != *driver);
            let edge = edges.iter().find(|e| e.driver == *driver).unwrap();
            let trip = &self.scenario.trips[rider.trip];
            let eta_ms = naive::ms_of(edge.eta_s);
            let car = self
                .cars
                .iter_mut()
                .find(|c| c.snapshot.id == *driver)
                .unwrap();
            car.free_at = now + DurationMs::new(eta_ms) + trip.trip;
            car.snapshot.position = Some(trip.dropoff);
            car.snapshot.idle_since_ms = Some(car.free_at);
            self.releases.push(car.free_at);
            total_eta_s += edge.eta_s;
            self.reference.ends[rider.trip] = Some(End::Assigned {
                driver: driver.to_string(),
                at_ms: now.get(),
                eta_s: edge.eta_s,
            });
        }
        total_eta_s
    }
}

/// Passes only if a run did what the reference did.
pub(crate) fn assert_same(scenario: &Scenario, run: &Run, reference: &Reference) {
    for (i, outcome) in run.outcomes.iter().enumerate() {
        let (id, wanted) = (&scenario.trips[i].request.id, reference.ends[i].as_ref());
        let (end, eta_s) = match *outcome {
            Outcome::Assigned { driver, at, eta_s } => {
                let driver = scenario.drivers[driver as usize].snapshot.id.to_string();
                let at_ms = at.get();
                (
                    End::Assigned {
                        driver,
                        at_ms,
                        eta_s: 0.0,
                    },
                    eta_s,
                )
            }
            Outcome::Expired { had_candidate } => (End::Expired { had_candidate }, 0.0),
            Outcome::GaveUp { .. } => panic!("nobody gives up in the reference world"),
        };
        let mut wanted = wanted.unwrap_or_else(|| panic!("{id} has no end")).clone();
        if let End::Assigned { eta_s: theirs, .. } = &mut wanted {
            assert!((*theirs - eta_s).abs() < 1e-6, "{id}: {eta_s} {theirs}");
            *theirs = 0.0;
        }
        assert_eq!(end, wanted, "{id} under {}", run.policy);
    }
    assert_eq!(run.windows.len(), reference.windows.len());
    for (row, wanted) in run.windows.iter().zip(&reference.windows) {
        assert_window(row, wanted);
    }
}

fn assert_window(row: &WindowRow, wanted: &Window) {
    assert!(
        (row.total_eta_s - wanted.total_eta_s).abs() < 1e-6,
        "{row:?} {wanted:?}"
    );
    let gains = row
        .gains
        .map(|g| (g.vs_greedy_edge.get(), g.vs_greedy.get()));
    let told = Window {
        closed_at_ms: row.closed_at.get(),
        requests: row.requests as usize,
        drivers: row.drivers as usize,
        edges: wanted.edges.map(|_| row.edges as usize),
        assigned: row.assigned as usize,
        expired: row.expired as usize,
        total_eta_s: wanted.total_eta_s,
        gains_ms: gains,
    };
    assert_eq!(told, *wanted);
}
