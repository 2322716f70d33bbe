//! The closed-loop world of a replay: supply moves with the decisions.
//!
//! Closes lie at `t0 + k × window_ms`, k ≥ 1 (or `phase` after that); a request belongs to the first close strictly later
//! than its time; a driver is available at a close when it is free at or before it. At each close:
//! intake, expiry, decision. An assigned driver reaches the pickup at close + ETA, drops off after
//! the trip time, and is available there again. Idle drivers stay. The same [`crate::decision`]
//! functions decide here and in the live service.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::Arc,
    time::{Duration, Instant},
};

use kheya_solver::{Method, Options};

use super::{
    Outcome, Policy, Run, Scenario, WindowGains, WindowRow,
    ahead::{Asked, Driving, on_trip},
};
use crate::{
    decision::{
        self, CoolDown, DecisionError, DemandSource, DriverSnapshot, Foresight, PendingRequest,
        Phase, Reason, WindowDecision, WindowSnapshot, decide_batch, decide_edge_first,
        decide_oldest_first, phantoms_of,
    },
    domain::{DurationMs, UnixMs},
    eta::StraightLine,
};

/// Runs a policy over a scenario. `progress` is told, now and then, how many requests have ended.
///
/// # Errors
/// [`DecisionError`], which would be a defect of ours: the run is not worth reporting then.
pub fn run(
    scenario: &Scenario,
    policy: Policy,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Run, DecisionError> {
    let mut world = World::new(scenario, policy);
    if policy.has_windows() {
        world.run_windows(progress)?;
    } else {
        world.run_events(progress);
    }
    Ok(world.run)
}

struct World<'a> {
    scenario: &'a Scenario,
    eta: StraightLine,
    run: Run,
    /// Next trip whose request has not come in.
    next: usize,
    /// Trips whose requests wait, by index and so by age.
    pending: Vec<Waiting>,
    /// Each driver where it is or will be free.
    drivers: Vec<Arc<DriverSnapshot>>,
    free: Vec<bool>,
    /// Drivers that will be free, by (instant, index).
    releases: BinaryHeap<Reverse<(UnixMs, u32)>>,
    /// What each driver drives for, while it is not free.
    drives: Vec<Option<Driving>>,
    ended: u64,
    /// Requests that expired at closes that left nobody to decide, since the last window.
    expired_between: u32,
}

#[derive(Clone, Copy)]
struct Waiting {
    trip: u32,
    left_over: u32,
    had_candidate: bool,
    /// When the rider has had enough of waiting.
    gives_up_at: Option<UnixMs>,
    /// Offers that drivers declined.
    declined: u32,
    /// When a window first planned it.
    planned_since: Option<UnixMs>,
}

/// What became of an offer.
enum Answer {
    Taken,
    Declined,
    /// The driver took it and the rider, seeing the ETA, did not.
    Cancelled,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, policy: Policy) -> Self {
        let window = if policy.has_windows() {
            scenario.config.window_ms
        } else {
            DurationMs::ZERO
        };
        let releases = scenario
            .drivers
            .iter()
            .zip(0u32..)
            .map(|(driver, i)| Reverse((driver.from, i)))
            .collect();
        Self {
            scenario,
            eta: StraightLine::of(&scenario.config),
            run: Run {
                policy,
                window,
                outcomes: vec![
                    Outcome::Expired {
                        had_candidate: false
                    };
                    scenario.trips.len()
                ],
                windows: Vec::new(),
                declined: 0,
                planned: Vec::new(),
                solve_times: Vec::new(),
            },
            next: 0,
            pending: Vec::new(),
            drivers: scenario
                .drivers
                .iter()
                .map(|driver| driver.snapshot.clone())
                .collect(),
            free: vec![false; scenario.drivers.len()],
            releases,
            drives: vec![None; scenario.drivers.len()],
            ended: 0,
            expired_between: 0,
        }
    }

    fn run_windows(&mut self, progress: &(dyn Fn(u64) + Sync)) -> Result<(), DecisionError> {
        // the last close that nothing can belong to: the start, or less than a window before it
        let mut close = self.first_close() - self.run.window;
        loop {
            close = close + self.run.window;
            if self.pending.is_empty() {
                let Some(trip) = self.scenario.trips.get(self.next) else {
                    // the last ones expired after the last window: they stand in its row
                    if let Some(last) = self.run.windows.last_mut() {
                        last.expired += self.expired_between;
                    }
                    return Ok(());
                };
                // an idle region has no windows: on to the close of the next request
                close = close.max(self.close_after(trip.request.requested_at_ms));
            }
            self.take_in(|requested_at| requested_at < close);
            self.expired_between += self.expire(close);
            if !self.pending.is_empty() {
                self.release_until(close);
                let (decision, drivers) = self.decide_window(close)?;
                self.record_window(close, &decision);
                self.apply(close, &decision, 0, &drivers);
            }
            progress(self.ended);
        }
    }

    /// The first close after the start.
    fn first_close(&self) -> UnixMs {
        let phase = self.scenario.phase;
        self.scenario.t0
            + if phase > DurationMs::ZERO {
                phase
            } else {
                self.run.window
            }
    }

    /// The first close strictly later than `at`.
    fn close_after(&self, at: UnixMs) -> UnixMs {
        let (window_ms, first) = (self.run.window.get(), self.first_close());
        let passed = (at - first).get().div_euclid(window_ms);
        first + DurationMs::new((passed + 1) * window_ms)
    }

    fn run_events(&mut self, progress: &(dyn Fn(u64) + Sync)) {
        loop {
            let arrival = self
                .scenario
                .trips
                .get(self.next)
                .map(|trip| trip.request.requested_at_ms);
            let release = self.releases.peek().map(|Reverse((at, _))| *at);
            let now = match (arrival, release) {
                (Some(arrival), Some(release)) => arrival.min(release),
                (Some(arrival), None) => arrival,
                (None, Some(release)) if !self.pending.is_empty() => release,
                (None, _) => break,
            };
            self.expire(now);
            let waited = self.pending.len();
            let released = self.release_until(now);
            self.take_in(|requested_at| requested_at <= now);
            self.decide_event(now, released, waited);
            progress(self.ended);
        }
        // nothing can happen to those who still wait
        self.expire(UnixMs::new(i64::MAX));
        progress(self.ended);
    }

    /// Decides at one instant. Requests that waited before had no candidate among the cars that were
    /// free before, so only new requests look at those; where offers can fail everybody looks at all,
    /// and again until no offer fails.
    fn decide_event(&mut self, now: UnixMs, released: Vec<u32>, waited: usize) {
        if self.scenario.behaviour.offers_fail() {
            loop {
                let failed = (self.run.declined, self.pending.len());
                let drivers = self.free_drivers(now);
                let sent = self.decide_in_turn(now, 0, &drivers);
                if failed == (self.run.declined, self.pending.len() + sent) {
                    return;
                }
            }
        }
        let arrived = self.pending.len() > waited;
        let first = if released.is_empty() { waited } else { 0 };
        let drivers = if arrived {
            self.free_drivers(now)
        } else {
            self.at_work(released, now)
        };
        self.decide_in_turn(now, first, &drivers);
    }

    /// Gives the pending requests from `first` on the best of `drivers`, oldest first; says how many
    /// were sent off.
    fn decide_in_turn(&mut self, now: UnixMs, first: usize, drivers: &[u32]) -> usize {
        let mut first = first;
        let mut sent = 0;
        let most = self.scenario.config.max_snapshot_requests as usize;
        while first < self.pending.len() {
            let drivers = self.still_free(drivers);
            if drivers.is_empty() {
                break;
            }
            // this rule has no windows, so no snapshot limits it: the next ones have their turn too
            let later = self.pending.split_off(self.pending.len().min(first + most));
            let snapshot = self.snapshot(now, first, &drivers);
            let decision = decide_oldest_first(&snapshot, &self.eta);
            sent += self.apply(now, &decision, first, &drivers);
            first = self.pending.len();
            self.pending.extend(later);
        }
        sent
    }

    fn still_free(&self, drivers: &[u32]) -> Vec<u32> {
        let free = drivers.iter().copied();
        free.filter(|&driver| self.free[driver as usize]).collect()
    }

    fn take_in(&mut self, comes_in: impl Fn(UnixMs) -> bool) {
        while let Some(trip) = self.scenario.trips.get(self.next)
            && comes_in(trip.request.requested_at_ms)
        {
            let (seed, request) = (self.scenario.seed, &trip.request);
            let patience = self.scenario.behaviour.patience;
            let wait = patience.and_then(|p| p.wait(seed, request.id.as_str()));
            self.pending.push(Waiting {
                trip: self.next as u32,
                left_over: 0,
                had_candidate: false,
                gives_up_at: wait.map(|wait| request.requested_at_ms + wait),
                declined: 0,
                planned_since: None,
            });
            self.next += 1;
        }
    }

    /// Ends the requests that have waited longer than they may at `now`, or than their riders would;
    /// says how many.
    fn expire(&mut self, now: UnixMs) -> u32 {
        let (scenario, outcomes) = (self.scenario, &mut self.run.outcomes);
        let before = self.pending.len();
        self.pending.retain(|waiting| {
            let requested_at = scenario.trips[waiting.trip as usize]
                .request
                .requested_at_ms;
            let max_wait = scenario.config.max_wait_ms;
            let had_candidate = waiting.had_candidate;
            let lost = match waiting.gives_up_at {
                Some(at) if at <= now && at <= requested_at + max_wait => {
                    Some(Outcome::GaveUp { at_eta: false })
                }
                _ if now - requested_at > max_wait => Some(Outcome::Expired { had_candidate }),
                _ => None,
            };
            if let Some(lost) = lost {
                outcomes[waiting.trip as usize] = lost;
            }
            lost.is_none()
        });
        let expired = before - self.pending.len();
        self.ended += expired as u64;
        expired as u32
    }

    /// Frees the drivers that are free at or before `now`; returns them in id order.
    fn release_until(&mut self, now: UnixMs) -> Vec<u32> {
        let mut released = Vec::new();
        while let Some(&Reverse((at, driver))) = self.releases.peek()
            && at <= now
        {
            self.releases.pop();
            self.free[driver as usize] = true;
            self.drives[driver as usize] = None;
            released.push(driver);
        }
        released.sort_unstable();
        released
    }

    /// Free drivers still at work at `now`, in id order.
    fn free_drivers(&self, now: UnixMs) -> Vec<u32> {
        let free = (0u32..)
            .zip(&self.free)
            .filter(|&(_, &free)| free)
            .map(|(driver, _)| driver);
        self.at_work(free.collect(), now)
    }

    /// Those of `drivers` that still take assignments at `now`.
    fn at_work(&self, mut drivers: Vec<u32>, now: UnixMs) -> Vec<u32> {
        drivers.retain(|&driver| {
            self.scenario.drivers[driver as usize]
                .to
                .is_none_or(|to| now <= to)
        });
        drivers
    }

    /// The pending requests from `first` on, with `drivers` to choose from.
    fn snapshot(&self, now: UnixMs, first: usize, drivers: &[u32]) -> WindowSnapshot {
        let requests = self.pending[first..].iter().map(|waiting| PendingRequest {
            request: self.scenario.trips[waiting.trip as usize].request.clone(),
            left_over: waiting.left_over,
        });
        let drivers = drivers
            .iter()
            .map(|&driver| self.drivers[driver as usize].clone());
        let (config, seed) = (self.scenario.config.clone(), self.scenario.seed);
        WindowSnapshot::from_ordered(now, config, seed, requests.collect(), drivers.collect())
    }

    /// All pending requests with the free `drivers` to choose from, those who will be free soon, and
    /// what was asked for lately: nothing that a live region would not know.
    fn snapshot_ahead(&self, now: UnixMs, free: &[u32]) -> WindowSnapshot {
        let config = &self.scenario.config;
        let horizon = config.plan_ahead_ms.max(config.demand_ahead_ms);
        let mut drivers: Vec<(u32, Arc<DriverSnapshot>)> = free
            .iter()
            .map(|&driver| (driver, self.drivers[driver as usize].clone()))
            .collect();
        for &Reverse((_, driver)) in &self.releases {
            let Some(end) = self.drives[driver as usize].map(|drives| drives.announced(now)) else {
                continue;
            };
            let works = self.scenario.drivers[driver as usize].to;
            if end.at_ms - now <= horizon && works.is_none_or(|to| end.at_ms <= to) {
                drivers.push((driver, on_trip(&self.drivers[driver as usize], end)));
            }
        }
        drivers.sort_unstable_by_key(|&(driver, _)| driver);
        let requests = self.pending.iter().map(|waiting| PendingRequest {
            request: self.scenario.trips[waiting.trip as usize].request.clone(),
            left_over: waiting.left_over,
        });
        let waiting = self.pending.iter().filter_map(|waiting| {
            waiting.planned_since.map(|since| decision::Waiting {
                request_id: self.scenario.trips[waiting.trip as usize]
                    .request
                    .id
                    .clone(),
                planned_since_ms: Some(since),
                deadline_ms: None,
            })
        });
        let asked = Asked(&self.scenario.trips[..self.next]);
        let learned = self.scenario.demand_model.as_deref();
        let source = learned.map_or(&asked as &dyn DemandSource, |model| model);
        let phantoms = phantoms_of(source, config, now);
        let drivers = drivers.into_iter().map(|(_, driver)| driver).collect();
        WindowSnapshot::from_ordered(
            now,
            config.clone(),
            self.scenario.seed,
            requests.collect(),
            drivers,
        )
        .foreseeing(Foresight::new(phantoms, waiting.collect()))
    }

    fn decide_window(
        &mut self,
        close: UnixMs,
    ) -> Result<(WindowDecision, Vec<u32>), DecisionError> {
        let drivers = self.free_drivers(close);
        let looks_ahead = self.run.policy == Policy::Batch && self.scenario.config.looks_ahead();
        let snapshot = if looks_ahead {
            self.snapshot_ahead(close, &drivers)
        } else {
            self.snapshot(close, 0, &drivers)
        };
        let decision = match self.run.policy {
            Policy::Greedy | Policy::GreedyNow => decide_oldest_first(&snapshot, &self.eta),
            Policy::GreedyEdge => decide_edge_first(&snapshot, &self.eta),
            Policy::Batch => {
                let options = Options {
                    method: Method::Auto,
                    ..Options::default()
                };
                let mut started = Instant::now();
                let mut solve = Duration::ZERO;
                let batch = decide_batch(&snapshot, &self.eta, &options, |phase| {
                    let now = Instant::now();
                    if phase == Phase::Solve {
                        solve += now - started;
                    }
                    started = now;
                })?;
                self.run.solve_times.push(solve);
                batch.decision
            }
        };
        Ok((decision, drivers))
    }

    fn record_window(&mut self, close: UnixMs, decision: &WindowDecision) {
        self.run.windows.push(WindowRow {
            closed_at: close,
            requests: self.pending.len() as u32,
            deferred: (self.pending.len() as u32)
                .saturating_sub(self.scenario.config.max_snapshot_requests),
            drivers: decision.drivers as u32,
            edges: decision.edges as u32,
            assigned: decision.assignments.len() as u32,
            expired: std::mem::take(&mut self.expired_between),
            total_eta_s: decision.total_eta_s(),
            planned: decision.planned().count() as u32,
            gains: decision.gains().map(|facts| WindowGains {
                vs_greedy_edge: facts.gain_vs_greedy_edge,
                vs_greedy: facts.gain_vs_greedy,
                status: facts.status,
            }),
        });
    }

    /// Sends the assigned drivers off and carries the other requests over; says how many were sent.
    /// The decision was made on the pending requests from `first` on and on `drivers`.
    fn apply(
        &mut self,
        now: UnixMs,
        decision: &WindowDecision,
        first: usize,
        drivers: &[u32],
    ) -> usize {
        let mut sent = 0;
        let mut assigned = decision.assignments.iter().peekable();
        let mut unmatched = decision.unmatched.iter().peekable();
        let mut kept = first;
        for at in first..self.pending.len() {
            let mut waiting = self.pending[at];
            let trip = &self.scenario.trips[waiting.trip as usize];
            if let Some(pair) = assigned.next_if(|pair| pair.request_id == trip.request.id) {
                let found =
                    drivers.binary_search_by(|&d| self.drivers[d as usize].id.cmp(&pair.driver_id));
                if let Ok(found) = found {
                    match self.answer(drivers[found], &waiting, pair.eta_s) {
                        Answer::Taken => {
                            self.send(drivers[found], waiting.trip, now, pair.eta_s);
                            sent += 1;
                            continue;
                        }
                        Answer::Cancelled => {
                            self.run.outcomes[waiting.trip as usize] =
                                Outcome::GaveUp { at_eta: true };
                            self.ended += 1;
                            continue;
                        }
                        Answer::Declined => {
                            self.decline(drivers[found], waiting.trip, now);
                            waiting.declined += 1;
                            waiting.had_candidate = true;
                        }
                    }
                }
            }
            if let Some(left) = unmatched.next_if(|left| left.request_id == trip.request.id) {
                waiting.had_candidate |= left.reason.had_candidate();
                waiting.left_over = waiting.left_over.saturating_add(1);
                if left.reason == Reason::Planned && waiting.planned_since.is_none() {
                    waiting.planned_since = Some(now);
                    self.run.planned.push((waiting.trip, now));
                }
            }
            self.pending[kept] = waiting;
            kept += 1;
        }
        self.pending.truncate(kept);
        sent
    }

    /// What a driver says to an offer, and then its rider to the ETA.
    fn answer(&self, driver: u32, waiting: &Waiting, eta_s: f64) -> Answer {
        let (scenario, seed) = (self.scenario, self.scenario.seed);
        let request_id = scenario.trips[waiting.trip as usize].request.id.as_str();
        let driver_id = self.drivers[driver as usize].id.as_str();
        let takes = scenario
            .behaviour
            .acceptance
            .is_none_or(|a| a.takes(seed, request_id, driver_id, waiting.declined, eta_s));
        let patience = scenario.behaviour.patience;
        if !takes {
            Answer::Declined
        } else if patience.is_none_or(|p| p.stays(seed, request_id, eta_s)) {
            Answer::Taken
        } else {
            Answer::Cancelled
        }
    }

    /// Keeps a pair apart for a while: the driver declined the request, which waits on with its age.
    fn decline(&mut self, driver: u32, trip: u32, now: UnixMs) {
        // never the same pair twice at one instant, however short the cool-down
        let cooldown = self.scenario.config.decline_cooldown_ms;
        let until_ms = now + cooldown.max(DurationMs::new(1));
        let snapshot = Arc::make_mut(&mut self.drivers[driver as usize]);
        snapshot.cooldowns.retain(|pair| pair.until_ms > now);
        snapshot.cooldowns.push(CoolDown {
            request_id: self.scenario.trips[trip as usize].request.id.clone(),
            rider_id: None,
            until_ms,
        });
        self.run.declined += 1;
    }

    /// Sends a driver to a rider, and on to the drop-off.
    fn send(&mut self, driver: u32, trip: u32, now: UnixMs, eta_s: f64) {
        self.run.outcomes[trip as usize] = Outcome::Assigned {
            driver,
            at: now,
            eta_s,
        };
        self.ended += 1;
        let trip = &self.scenario.trips[trip as usize];
        let free_at = now + DurationMs::from_seconds(eta_s) + trip.trip;
        let mut snapshot = DriverSnapshot::clone(&self.drivers[driver as usize]);
        snapshot.position = Some(trip.dropoff);
        snapshot.idle_since_ms = Some(free_at);
        self.drivers[driver as usize] = Arc::new(snapshot);
        self.free[driver as usize] = false;
        let (error, seed) = (self.scenario.trip_end_error, self.scenario.seed);
        let told = &self.drivers[driver as usize];
        self.drives[driver as usize] = Some(Driving::new(error, seed, trip, told, free_at));
        self.releases.push(Reverse((free_at, driver)));
    }
}
