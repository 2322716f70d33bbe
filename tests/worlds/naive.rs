//! The contract's steps from a snapshot to candidate edges, and the greedy rules, written once more
//! in plain code: every pair looked at, the textbook haversine, nothing shared with the product but
//! its types.

use std::collections::{BTreeMap, BTreeSet};

use kheya::{
    config::RegionConfig,
    decision::{DriverSnapshot, Excluded, Held, PendingRequest, Presence, Reason, RequestSnapshot},
    domain::{DriverId, EARTH_RADIUS_KM, Place, RequestId, UnixMs},
};
use kheya_solver::{Graph, Method, Options, solve};

use super::window_parts::{NOW, WindowParts};

/// A candidate edge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    pub(crate) driver: DriverId,
    pub(crate) eta_s: f64,
    pub(crate) cost_ms: i64,
}

/// A request with its candidates by (ETA, driver id), or why there are none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) request: RequestId,
    pub(crate) unmatched_ms: i64,
    pub(crate) edges: Vec<Edge>,
    pub(crate) reason: Option<Reason>,
}

impl Row {
    /// The edges that cost less than going without.
    pub(crate) fn worth(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|e| e.cost_ms < self.unmatched_ms)
    }
}

/// Textbook great-circle distance.
pub(crate) fn haversine_km(a: Place, b: Place) -> f64 {
    let (lat_a, lat_b) = (a.lat().to_radians(), b.lat().to_radians());
    let north = libm::sin((lat_b - lat_a) / 2.0);
    let east = libm::sin((b.lng() - a.lng()).to_radians() / 2.0);
    let h = north * north + libm::cos(lat_a) * libm::cos(lat_b) * east * east;
    2.0 * EARTH_RADIUS_KM * libm::asin(h.sqrt())
}

pub(crate) fn ms_of(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Why a driver cannot be chosen.
pub(crate) fn exclusion(
    driver: &DriverSnapshot,
    config: &RegionConfig,
    now: UnixMs,
) -> Option<Excluded> {
    if driver.presence == Presence::Offline {
        Some(Excluded::Offline)
    } else if driver.presence == Presence::Busy {
        Some(Excluded::Busy)
    } else if driver.held == Held::OnTrip {
        Some(Excluded::OnTrip)
    } else if driver.held == Held::Offered {
        Some(Excluded::Claimed)
    } else if driver
        .at_ms
        .is_some_and(|at| now.get() - at.get() > config.max_location_age_ms.get())
    {
        Some(Excluded::StaleLocation)
    } else {
        None
    }
}

pub(crate) fn class_fits(request: &RequestSnapshot, driver: &DriverSnapshot) -> bool {
    let accepted = &request.vehicle_classes;
    accepted.is_empty()
        || driver
            .vehicle_class
            .iter()
            .any(|class| accepted.contains(class))
}

pub(crate) fn in_cooldown(request: &RequestSnapshot, driver: &DriverSnapshot, now: UnixMs) -> bool {
    if request.exclude_driver_ids.contains(&driver.id) {
        return true;
    }
    for cooldown in &driver.cooldowns {
        let same_rider = request.rider_id.is_some() && request.rider_id == cooldown.rider_id;
        if now < cooldown.until_ms && (cooldown.request_id == request.id || same_rider) {
            return true;
        }
    }
    false
}

pub(crate) fn pair_cost_ms(
    config: &RegionConfig,
    driver: &DriverSnapshot,
    eta_s: f64,
    now: UnixMs,
) -> i64 {
    let declines = 1.0 - driver.acceptance_rate.unwrap_or(1.0);
    let idle_ms = driver
        .idle_since_ms
        .map_or(0, |since| (now.get() - since.get()).max(0));
    let idle_s = (idle_ms as f64 / 1000.0).min(config.idle_cap_s);
    ms_of(eta_s + declines * config.redispatch_s - config.idle_weight * idle_s)
}

pub(crate) fn unmatched_ms(config: &RegionConfig, request: &RequestSnapshot, now: UnixMs) -> i64 {
    let age_ms = (now.get() - request.requested_at_ms.get()).max(0);
    let longest_s = request
        .max_pickup_eta_s
        .unwrap_or(0.0)
        .max(config.max_pickup_eta_s);
    let base_s = request
        .unmatched_cost_s
        .unwrap_or(longest_s + config.redispatch_s);
    ms_of(base_s + config.age_weight * age_ms as f64 / 1000.0)
}

/// The rows of a window, oldest request first.
pub(crate) fn rows(parts: &WindowParts) -> Vec<Row> {
    let drivers: Vec<&DriverSnapshot> = parts.drivers.iter().collect();
    let mut requests: Vec<&PendingRequest> = parts.requests.iter().collect();
    requests.sort_by(|a, b| {
        let key = |p: &PendingRequest| (p.request.requested_at_ms, p.request.id.clone());
        key(a).cmp(&key(b))
    });
    let config = &parts.config;
    let row = |(turn, pending): (usize, &PendingRequest)| {
        let found = if turn >= config.max_snapshot_requests as usize {
            Err(Reason::Deferred)
        } else if parts.edges.is_some() {
            given_edges(parts, &pending.request)
        } else {
            found_edges(config, pending, &drivers, NOW)
        };
        row_of(config, &pending.request, found, NOW)
    };
    requests.into_iter().enumerate().map(row).collect()
}

pub(crate) fn row_of(
    config: &RegionConfig,
    request: &RequestSnapshot,
    found: Result<Vec<Edge>, Reason>,
    now: UnixMs,
) -> Row {
    Row {
        request: request.id.clone(),
        unmatched_ms: unmatched_ms(config, request, now),
        reason: found.as_ref().err().copied(),
        edges: found.unwrap_or_default(),
    }
}

/// Candidates of one request among `drivers`, by radii, filters and limits.
pub(crate) fn found_edges(
    config: &RegionConfig,
    pending: &PendingRequest,
    drivers: &[&DriverSnapshot],
    now: UnixMs,
) -> Result<Vec<Edge>, Reason> {
    let request = &pending.request;
    let pickup = request.pickup.unwrap().place();
    let km = |d: &DriverSnapshot| haversine_km(pickup, d.position.unwrap().place());
    let available: Vec<&DriverSnapshot> = drivers
        .iter()
        .copied()
        .filter(|d| exclusion(d, config, now).is_none())
        .collect();
    let fitting: Vec<&DriverSnapshot> = available
        .iter()
        .copied()
        .filter(|d| class_fits(request, d))
        .collect();

    let radii = &config.search_radii_km;
    let mut step = (pending.left_over as usize).min(radii.len() - 1);
    let within = loop {
        let within: Vec<&DriverSnapshot> = fitting
            .iter()
            .copied()
            .filter(|d| !in_cooldown(request, d, now) && km(d) <= radii[step])
            .collect();
        if within.len() >= config.min_candidates as usize || step + 1 == radii.len() {
            break within;
        }
        step += 1;
    };
    if within.is_empty() {
        return Err(if !available.is_empty() && fitting.is_empty() {
            Reason::VehicleClass
        } else if fitting.iter().all(|d| km(d) > radii[radii.len() - 1]) {
            Reason::NoDriverInRange
        } else {
            Reason::Cooldown
        });
    }
    let eta_s = |d: &DriverSnapshot| km(d) * config.detour / config.speed_kmh * 3600.0;
    let mut edges: Vec<Edge> = within
        .into_iter()
        .map(|d| Edge {
            driver: d.id.clone(),
            eta_s: eta_s(d),
            cost_ms: pair_cost_ms(config, d, eta_s(d), now),
        })
        .collect();
    sort_by_eta(&mut edges);
    edges.truncate(config.max_candidates as usize);
    edges.retain(|e| e.eta_s <= request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s));
    if edges.is_empty() {
        return Err(Reason::OverMaxPickupEta);
    }
    Ok(edges)
}

/// Candidates of one request among the edges that the window brings.
fn given_edges(parts: &WindowParts, request: &RequestSnapshot) -> Result<Vec<Edge>, Reason> {
    let config = &parts.config;
    let mut cheapest: BTreeMap<&DriverId, f64> = BTreeMap::new();
    for edge in parts.edges.iter().flatten() {
        if edge.request_id == request.id {
            let eta_s = cheapest.entry(&edge.driver_id).or_insert(edge.eta_s);
            *eta_s = eta_s.min(edge.eta_s);
        }
    }
    let driver = |id: &DriverId| parts.drivers.iter().find(|d| d.id == *id).unwrap();
    cheapest.retain(|id, _| exclusion(driver(id), config, NOW).is_none());
    if cheapest.is_empty() {
        return Err(Reason::NoDriverInRange);
    }
    cheapest.retain(|id, _| class_fits(request, driver(id)));
    if cheapest.is_empty() {
        return Err(Reason::VehicleClass);
    }
    cheapest.retain(|id, _| !in_cooldown(request, driver(id), NOW));
    if cheapest.is_empty() {
        return Err(Reason::Cooldown);
    }
    let longest_s = request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s);
    cheapest.retain(|_, eta_s| *eta_s <= longest_s);
    if cheapest.is_empty() {
        return Err(Reason::OverMaxPickupEta);
    }
    let mut edges: Vec<Edge> = cheapest
        .into_iter()
        .map(|(id, eta_s)| Edge {
            driver: id.clone(),
            eta_s,
            cost_ms: pair_cost_ms(config, driver(id), eta_s, NOW),
        })
        .collect();
    sort_by_eta(&mut edges);
    Ok(edges)
}

fn sort_by_eta(edges: &mut [Edge]) {
    edges.sort_by(|a, b| a.eta_s.total_cmp(&b.eta_s).then(a.driver.cmp(&b.driver)));
}

/// Pairs by request.
pub(crate) type Pairs = BTreeMap<RequestId, DriverId>;

/// Rows in order, each the free driver of least (cost, id).
pub(crate) fn oldest_first(rows: &[Row]) -> Pairs {
    let mut pairs = Pairs::new();
    let mut taken = BTreeSet::new();
    for row in rows {
        let free = row.worth().filter(|e| !taken.contains(&e.driver));
        if let Some(best) = free.min_by_key(|e| (e.cost_ms, &e.driver)) {
            taken.insert(best.driver.clone());
            pairs.insert(row.request.clone(), best.driver.clone());
        }
    }
    pairs
}

/// All edges in an order, each taken while both ends are free.
fn edges_first(rows: &[Row], before: impl Fn(&Edge, &Edge) -> std::cmp::Ordering) -> Pairs {
    let mut all: Vec<(&Row, &Edge)> = rows
        .iter()
        .flat_map(|row| row.worth().map(move |edge| (row, edge)))
        .collect();
    all.sort_by(|(row_a, a), (row_b, b)| {
        before(a, b)
            .then(row_a.request.cmp(&row_b.request))
            .then(a.driver.cmp(&b.driver))
    });
    let mut pairs = Pairs::new();
    let mut taken = BTreeSet::new();
    for (row, edge) in all {
        if !pairs.contains_key(&row.request) && taken.insert(edge.driver.clone()) {
            pairs.insert(row.request.clone(), edge.driver.clone());
        }
    }
    pairs
}

/// By (ETA, request id, driver id): the replay's policy.
pub(crate) fn least_eta_first(rows: &[Row]) -> Pairs {
    edges_first(rows, |a, b| a.eta_s.total_cmp(&b.eta_s))
}

/// By (cost, request id, driver id): the solver's method.
pub(crate) fn least_cost_first(rows: &[Row]) -> Pairs {
    edges_first(rows, |a, b| a.cost_ms.cmp(&b.cost_ms))
}

/// Cost of some pairs and of everyone else's going without. A pair that is no edge is a failure.
pub(crate) fn objective_ms(rows: &[Row], pairs: &Pairs) -> i64 {
    let cost = |row: &Row| match pairs.get(&row.request) {
        None => row.unmatched_ms,
        Some(driver) => {
            let edge = row.edges.iter().find(|e| e.driver == *driver);
            edge.unwrap_or_else(|| panic!("{} ← {driver} is no candidate", row.request))
                .cost_ms
        }
    };
    rows.iter().map(cost).sum()
}

/// The least cost of a window, by the dense solver of another hand.
pub(crate) fn least_objective_ms(rows: &[Row]) -> i64 {
    let drivers: BTreeSet<&DriverId> = rows
        .iter()
        .flat_map(|row| row.edges.iter().map(|e| &e.driver))
        .collect();
    let column: BTreeMap<&DriverId, u32> = drivers.iter().copied().zip(0..).collect();
    let edges: Vec<(u32, u32, i64)> = rows
        .iter()
        .zip(0..)
        .flat_map(|(row, i)| {
            let column = &column;
            row.edges
                .iter()
                .map(move |e| (i, column[&e.driver], e.cost_ms))
        })
        .collect();
    let unmatched = rows.iter().map(|row| row.unmatched_ms).collect();
    let graph = Graph::from_edges(rows.len(), drivers.len(), unmatched, edges).unwrap();
    let options = Options {
        method: Method::Hungarian,
        ..Options::default()
    };
    let solution = solve(&graph, &options).unwrap();
    assert_eq!(solution.verify(&graph), Ok(()));
    solution.objective
}

/// The least cost of a tiny window, by trying every matching.
pub(crate) fn least_objective_by_trying_all_ms(rows: &[Row]) -> i64 {
    fn least<'r>(rows: &'r [Row], taken: &mut Vec<&'r DriverId>) -> i64 {
        let Some((row, others)) = rows.split_first() else {
            return 0;
        };
        let mut best = row.unmatched_ms + least(others, taken);
        for edge in &row.edges {
            if !taken.contains(&&edge.driver) {
                taken.push(&edge.driver);
                best = best.min(edge.cost_ms + least(others, taken));
                taken.pop();
            }
        }
        best
    }
    least(rows, &mut Vec::new())
}
