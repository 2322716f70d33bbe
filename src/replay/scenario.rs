//! What a replay replays: the demand, the fleet, and the rules they meet under, prepared once and
//! shared by every policy.

use std::sync::Arc;

use super::{
    Behaviour, TripEndError,
    input::{Demand, FleetDriver},
};
use crate::{
    config::RegionConfig,
    decision::{DriverSnapshot, RequestSnapshot},
    demand::DemandModel,
    domain::{DurationMs, UnixMs},
    eta::StraightLine,
    supply::Position,
};

/// A recorded trip, ready to be replayed.
#[derive(Debug, Clone)]
pub struct ScenarioTrip {
    /// The request.
    pub request: Arc<RequestSnapshot>,
    /// Where the rider gets out.
    pub dropoff: Position,
    /// Time from pickup to drop-off.
    pub trip: DurationMs,
    /// Straight distance from pickup to drop-off.
    pub straight_km: f64,
}

/// A driver of the fleet at the time it starts.
#[derive(Debug, Clone)]
pub struct ScenarioDriver {
    /// The driver where it starts.
    pub snapshot: Arc<DriverSnapshot>,
    /// When it starts.
    pub from: UnixMs,
    /// When it takes no new assignment any more.
    pub to: Option<UnixMs>,
}

/// Demand, fleet and rules of a replay.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The configuration in force, its `window_ms` included.
    pub config: RegionConfig,
    /// Seed of every random draw.
    pub seed: u64,
    /// Start: the first used request, or the start that was asked for.
    pub t0: UnixMs,
    /// Where the closes of the windows lie: at `t0` + `phase` + whole windows. Less than a window.
    pub phase: DurationMs,
    /// Who may refuse.
    pub behaviour: Behaviour,
    /// How well the ends of trips are known that windows look ahead to.
    pub trip_end_error: TripEndError,
    /// What windows that look ahead expect of the next riders; none: that those asked for lately stand
    /// for them.
    pub demand_model: Option<Arc<DemandModel>>,
    /// Trips by (`requested_at_ms`, id).
    pub trips: Vec<ScenarioTrip>,
    /// Drivers by id.
    pub drivers: Vec<ScenarioDriver>,
}

impl Scenario {
    /// Prepares a replay that starts at `t0`.
    pub fn new(
        config: RegionConfig,
        seed: u64,
        t0: UnixMs,
        demand: &Demand,
        fleet: &[FleetDriver],
    ) -> Self {
        let line = StraightLine::of(&config);
        let trips = demand.trips.iter().map(|trip| {
            let (pickup, dropoff) = (Position::new(trip.pickup), Position::new(trip.dropoff));
            let straight_km = pickup.distance_km(&dropoff);
            let trip_s = trip.trip_s.unwrap_or_else(|| line.seconds(straight_km));
            let request = RequestSnapshot {
                id: trip.request_id.clone(),
                rider_id: None,
                pickup: Some(pickup),
                vehicle_classes: Vec::new(),
                requested_at_ms: trip.requested_at,
                unmatched_cost_s: None,
                max_pickup_eta_s: None,
                exclude_driver_ids: Vec::new(),
            };
            let trip = DurationMs::from_seconds(trip_s);
            ScenarioTrip {
                request: Arc::new(request),
                dropoff,
                trip,
                straight_km,
            }
        });
        let trips = trips.collect();
        let mut drivers: Vec<ScenarioDriver> = fleet
            .iter()
            .map(|driver| {
                let position = Position::new(driver.place);
                let mut snapshot = DriverSnapshot::available(driver.driver_id.clone(), position);
                snapshot.idle_since_ms = Some(driver.from);
                ScenarioDriver {
                    snapshot: Arc::new(snapshot),
                    from: driver.from,
                    to: driver.to,
                }
            })
            .collect();
        drivers.sort_by(|a, b| a.snapshot.id.cmp(&b.snapshot.id));
        Self {
            config,
            seed,
            t0,
            phase: DurationMs::ZERO,
            behaviour: Behaviour::default(),
            trip_end_error: TripEndError::default(),
            demand_model: None,
            trips,
            drivers,
        }
    }

    /// The same with its windows closing `phase` later, which is taken modulo their length.
    #[must_use]
    pub fn with_phase(mut self, phase: DurationMs) -> Self {
        let window_ms = self.config.window_ms.get().max(1);
        self.phase = DurationMs::new(phase.get().rem_euclid(window_ms));
        self
    }

    /// The same with riders and drivers who may refuse.
    #[must_use]
    pub const fn with_behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// The same with the ends of trips known this well.
    #[must_use]
    pub const fn with_trip_end_error(mut self, error: TripEndError) -> Self {
        self.trip_end_error = error;
        self
    }

    /// The same with learned demand in place of that of late.
    #[must_use]
    pub fn with_demand_model(mut self, model: Option<Arc<DemandModel>>) -> Self {
        self.demand_model = model;
        self
    }

    /// Time of the last request; `t0` if there is none.
    pub fn last_request(&self) -> UnixMs {
        self.trips
            .last()
            .map_or(self.t0, |trip| trip.request.requested_at_ms)
    }
}
