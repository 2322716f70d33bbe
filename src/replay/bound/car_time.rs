//! What a car's time is worth, by the clock.
//!
//! A served rider takes up a car from the instant it is sent until the drop-off, and at no instant
//! are more cars under way than there are. With a price λ(t) ≥ 0 on each millisecond of a car, any
//! schedule pays at most `Σ_t λ(t) · cars(t)` for all its trips together, so that charging each trip
//! for its time and taking that sum off again is a bound (Lagrangian relaxation; Geoffrion 1974).
//! Any prices give a true one; [`CarTime::found`] looks for good ones.

use rayon::prelude::*;

use crate::replay::{Scenario, ScenarioTrip};

/// A price of 1 for a millisecond: prices are whole numbers of this part of it.
const SCALE: i64 = 4096;

/// The price is the same for a time of 2^16 ms, about a minute.
const STEP_SHIFT: u32 = 16;
const STEP_MS: i64 = 1 << STEP_SHIFT;

/// No millisecond is worth more than 16 of a rider's.
const MOST: f64 = (16 * SCALE) as f64;

/// Steps towards good prices.
const STEPS: u32 = 100;

/// A floor is known for each 2^13 ms of waiting, about eight seconds.
const FLOOR_SHIFT: u32 = 13;

/// Prices of a car's time, constant by steps; 0 before the first and after the last step.
pub(super) struct CarTime {
    start: i64,
    price: Vec<i64>,
    /// What a car costs from the start to the start of each step, and to the end.
    paid: Vec<i64>,
    /// Car milliseconds there are in each step.
    cars: Vec<i64>,
}

/// The cheapest way to serve a request.
#[derive(Clone, Copy)]
pub(super) struct Served {
    /// Delay, ETA and car time, in milliseconds, rounded down.
    pub(super) cost: i64,
    /// When the car is sent.
    pub(super) sent: i64,
}

impl CarTime {
    /// Time for nothing.
    pub(super) fn free(scenario: &Scenario) -> Self {
        let first = scenario.trips.first();
        let start = first.map_or(0, |trip| trip.request.requested_at_ms.get());
        let end = scenario
            .trips
            .iter()
            .map(|trip| latest(scenario, trip))
            .max();
        let steps = ((end.unwrap_or(start) - start) / STEP_MS + 1) as usize;
        let longest = scenario
            .trips
            .iter()
            .map(|trip| occupied_at_most(scenario, trip))
            .max();
        let mut cars = vec![0; steps];
        for driver in &scenario.drivers {
            let from = driver.from.get();
            let to = driver
                .to
                .map(|to| to.get().saturating_add(longest.unwrap_or(0)));
            add(&mut cars, start, from, to.unwrap_or(i64::MAX));
        }
        let mut time = Self {
            start,
            price: vec![0; steps],
            paid: Vec::new(),
            cars,
        };
        time.pay();
        time
    }

    /// Sums the prices up.
    fn pay(&mut self) {
        self.paid.clear();
        let mut paid = 0;
        self.paid.push(0);
        for price in &self.price {
            paid += price * STEP_MS;
            self.paid.push(paid);
        }
    }

    /// What all cars together cost at most, in milliseconds, rounded up.
    pub(super) fn of_all_cars(&self) -> i64 {
        let total: i128 = self
            .price
            .iter()
            .zip(&self.cars)
            .map(|(&p, &c)| i128::from(p) * i128::from(c))
            .sum();
        i64::try_from(-(-total).div_euclid(i128::from(SCALE))).unwrap_or(i64::MAX)
    }

    /// What a car costs until an instant, in parts of a millisecond.
    fn paid_until(&self, at: i64) -> i64 {
        let since = (at - self.start).clamp(0, (self.price.len() as i64) << STEP_SHIFT);
        let step = (since >> STEP_SHIFT) as usize;
        let in_step = since - ((step as i64) << STEP_SHIFT);
        self.paid[step] + self.price.get(step).map_or(0, |price| price * in_step)
    }

    /// The cheapest way to serve a trip's request by a car that can be sent after a wait, with a
    /// drive of `eta` to the pickup.
    pub(super) fn serve(
        &self,
        scenario: &Scenario,
        trip: &ScenarioTrip,
        wait: i64,
        eta: i64,
    ) -> Served {
        let requested = trip.request.requested_at_ms.get();
        let first = requested + wait;
        let last = requested + scenario.config.max_wait_ms.get();
        let drive = eta + trip.trip.get();
        let mut best = (i64::MAX, first);
        let mut look = |sent: i64| {
            let waited = (sent - requested + eta) * SCALE;
            if waited >= best.0 {
                return false;
            }
            let cost = waited + self.paid_until(sent + drive) - self.paid_until(sent);
            if cost < best.0 {
                best = (cost, sent);
            }
            true
        };
        look(first);
        if self.paid.last() == Some(&0) {
            return Served {
                cost: wait + eta,
                sent: first,
            };
        }
        for ahead in [0, drive] {
            let past = first + ahead - self.start;
            let mut edge = ((past >> STEP_SHIFT) + 1) << STEP_SHIFT;
            while edge + self.start - ahead < last {
                if !look(edge + self.start - ahead) {
                    break;
                }
                edge += STEP_MS;
            }
        }
        look(last);
        Served {
            cost: best.0.div_euclid(SCALE),
            sent: best.1,
        }
    }

    /// What serving a trip's request costs at least.
    pub(super) fn floor(&self, scenario: &Scenario, trip: &ScenarioTrip) -> Floor {
        let last = scenario.config.max_wait_ms.get();
        let free = self.paid.last() == Some(&0);
        let steps = if free { 0 } else { (last >> FLOOR_SHIFT) + 1 };
        Floor(
            (0..steps)
                .map(|step| self.serve(scenario, trip, step << FLOOR_SHIFT, 0).cost)
                .collect(),
        )
    }

    /// Prices that bound the riders' cost well where each waits as little as any could and no two
    /// want the same car: steps along the supergradient, ever shorter. Free unless that at least
    /// doubles the bound: elsewhere what matters more is where cars are, which is priced later.
    pub(super) fn found(scenario: &Scenario, waits: &[Option<i64>], lost: i64) -> Self {
        let mut time = Self::free(scenario);
        let mut exact = vec![0.0_f64; time.price.len()];
        let mut best = (i64::MIN, Vec::new());
        let mut at_first = None;
        for step in 0..STEPS {
            let (cost, used) = time.used(scenario, waits, lost);
            let bound = cost.saturating_sub(time.of_all_cars());
            at_first.get_or_insert(bound);
            if bound > best.0 {
                best = (bound, time.price.clone());
            }
            let length = SCALE as f64 / (2.0 + f64::from(step) / 5.0);
            for (at, exact) in exact.iter_mut().enumerate() {
                let cars = time.cars[at];
                let over = (used[at] - cars) as f64 / cars.max(STEP_MS) as f64;
                *exact = (*exact + length * over.clamp(-1.0, 1.0)).clamp(0.0, MOST);
                time.price[at] = *exact as i64;
            }
            time.pay();
        }
        let first = at_first.unwrap_or(0);
        if best.0 / 2 < first {
            return Self::free(scenario);
        }
        time.price = best.1;
        time.pay();
        time
    }

    /// What riders cost at these prices, and the car time they take up in each step.
    fn used(&self, scenario: &Scenario, waits: &[Option<i64>], lost: i64) -> (i64, Vec<i64>) {
        let pairs: Vec<_> = scenario
            .trips
            .par_iter()
            .zip(waits)
            .map(|(trip, wait)| {
                let eta = (*wait)?;
                let served = self.serve(scenario, trip, 0, eta);
                (served.cost < lost).then_some((
                    served.cost,
                    served.sent,
                    served.sent + eta + trip.trip.get(),
                ))
            })
            .collect();
        let mut used = vec![0; self.price.len()];
        let mut cost = 0;
        for pair in pairs {
            match pair {
                Some((c, from, to)) => {
                    cost += c;
                    add(&mut used, self.start, from, to);
                }
                None => cost += lost,
            }
        }
        (cost, used)
    }
}

/// Adds the time from `from` to `to` to the steps that begin at `start`.
fn add(steps: &mut [i64], start: i64, from: i64, to: i64) {
    let end = (steps.len() as i64) << STEP_SHIFT;
    let from = (from.saturating_sub(start)).clamp(0, end);
    let to = (to.saturating_sub(start)).clamp(from, end);
    let mut at = from;
    while at < to {
        let step = (at >> STEP_SHIFT) as usize;
        let next = ((step as i64 + 1) << STEP_SHIFT).min(to);
        steps[step] += next - at;
        at = next;
    }
}

/// When a trip's car is free at the latest.
fn latest(scenario: &Scenario, trip: &ScenarioTrip) -> i64 {
    let wait = scenario.config.max_wait_ms.get();
    trip.request.requested_at_ms.get() + wait + occupied_at_most(scenario, trip)
}

/// How long a trip takes up its car at most.
fn occupied_at_most(scenario: &Scenario, trip: &ScenarioTrip) -> i64 {
    let longest_s = trip.request.max_pickup_eta_s;
    let longest_s = longest_s.unwrap_or(scenario.config.max_pickup_eta_s);
    (longest_s * 1000.0).ceil() as i64 + trip.trip.get()
}

/// What serving a request costs at least, by how long it waits for its car; 0 of them if time is free.
pub(super) struct Floor(Vec<i64>);

impl Floor {
    /// After so long a wait, the drive to the pickup left out, which adds its own length at least.
    pub(super) fn of(&self, wait: i64) -> i64 {
        self.0
            .get((wait >> FLOOR_SHIFT) as usize)
            .map_or(wait, |&cost| cost.max(wait))
    }
}
