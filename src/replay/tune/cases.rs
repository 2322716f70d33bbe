//! What a sweep tries: every rule, window, cap, weight and fleet that belong together.

use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::report::Setting;
use crate::{
    config::RegionConfig,
    demand::DemandModel,
    domain::DurationMs,
    replay::{Behaviour, Policy, TripEndError, input::FleetDriver},
};

/// Most replays in one sweep.
const MOST_RUNS: usize = 20_000;

/// The values tried of one setting, rising, and which of them the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis<T> {
    values: Vec<T>,
    reference: T,
}

/// A sweep that was asked for.
#[derive(Debug, Clone)]
pub struct TunePlan {
    /// The region's other settings.
    pub config: RegionConfig,
    /// Lengths of a window.
    pub windows: Axis<DurationMs>,
    /// Longest pickup ETAs, in seconds.
    pub max_pickup_eta_s: Axis<f64>,
    /// Weights of a request's age.
    pub age_weight: Axis<f64>,
    /// How far ahead drivers are planned who will be free.
    pub plan_ahead: Axis<DurationMs>,
    /// How long past pickups stand for the next.
    pub demand_ahead: Axis<DurationMs>,
    /// Learned demand to try, too, wherever demand is looked ahead to.
    pub demand_model: Option<Arc<DemandModel>>,
    /// How well the ends of trips are known that are looked ahead to.
    pub trip_end_error: TripEndError,
    /// Fleets.
    pub fleets: Vec<TuneFleet>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Rules.
    pub rules: Rules,
    /// Who may refuse.
    pub behaviour: Behaviour,
    /// Zone whose hours of the day are told.
    pub tz: TimeZone,
}

/// A fleet to try.
#[derive(Debug, Clone)]
pub enum TuneFleet {
    /// So many drivers, drawn from the pickups anew under each seed.
    Sampled(u32),
    /// A recorded fleet.
    Recorded(Vec<FleetDriver>),
}

/// The rule whose window is chosen, and the rules beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The rule whose window is chosen.
    pub swept: Policy,
    /// The others.
    pub beside: Vec<Policy>,
    /// Whether the others, too, try every window, or the reference's alone.
    pub all_windows: bool,
}

/// One value of each axis.
#[derive(Clone, Copy)]
struct Values {
    window: DurationMs,
    cap_s: f64,
    weight: f64,
    plan: DurationMs,
    demand: DurationMs,
}

/// One thing to run, under every seed.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) policy: Policy,
    /// Index of the fleet.
    pub(super) fleet: usize,
    pub(super) config: RegionConfig,
    /// Whether learned demand stands for the next riders.
    pub(super) learned: bool,
    /// Whether it is what its fleet's others are compared with.
    pub(super) reference: bool,
}

/// A sweep that cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A value lies outside its rails, or does not go with another.
    #[error("{flag} {value}: {detail}")]
    Value {
        /// The flag it came with.
        flag: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A list has no value, or one twice.
    #[error("{flag}: {detail}")]
    List {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// More replays than anybody would wait for.
    #[error("{0} replays are too many ({MOST_RUNS} at most): name fewer settings, fleets or seeds")]
    TooMany(usize),
}

impl<T: PartialOrd + Copy + std::fmt::Display> Axis<T> {
    /// The values that `flag` named. The reference is `own`, the value in force, where it is one of
    /// them, else the first named.
    ///
    /// # Errors
    /// No value, or one twice.
    pub fn new(flag: &'static str, mut values: Vec<T>, own: T) -> Result<Self, PlanError> {
        let refused = |detail: String| Err(PlanError::List { flag, detail });
        let Some(&first) = values.first() else {
            return refused("at least one value is needed".into());
        };
        let reference = if values.contains(&own) { own } else { first };
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        // once sorted, what stands twice stands side by side
        let mut pairs = values.iter().zip(values.iter().skip(1));
        if let Some((twice, _)) = pairs.find(|(one, next)| one >= next) {
            return refused(format!("{twice} stands there twice"));
        }
        Ok(Self { values, reference })
    }

    /// Whether there is anything to choose.
    pub(super) const fn is_swept(&self) -> bool {
        self.values.len() > 1
    }

    /// Whether the others are compared with this one.
    fn is_reference(&self, value: T) -> bool {
        value == self.reference
    }

    /// The values that are tried: all, or the reference's alone.
    fn tried(&self, all: bool) -> &[T] {
        if all {
            &self.values
        } else {
            std::slice::from_ref(&self.reference)
        }
    }

    /// The smallest and the largest value.
    pub(super) fn ends(&self) -> [T; 2] {
        let first = self.values.first().copied().unwrap_or(self.reference);
        [first, self.largest()]
    }

    /// The largest value.
    pub(super) fn largest(&self) -> T {
        self.values.last().copied().unwrap_or(self.reference)
    }
}

impl TunePlan {
    /// Checks that every combination of values is a configuration, without any fleet yet.
    ///
    /// # Errors
    /// [`PlanError`] names the flag whose value does not fit.
    pub fn check(&self) -> Result<(), PlanError> {
        for policy in std::iter::once(&self.rules.swept).chain(&self.rules.beside) {
            self.cases_of(*policy, 0, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Everything to run, in the order of the report.
    pub(super) fn cases(&self) -> Result<Vec<Case>, PlanError> {
        let mut cases = Vec::new();
        for fleet in 0..self.fleets.len() {
            for policy in std::iter::once(&self.rules.swept).chain(&self.rules.beside) {
                self.cases_of(*policy, fleet, &mut cases)?;
            }
        }
        let runs = cases.len() * self.seeds.len();
        if runs > MOST_RUNS {
            return Err(PlanError::TooMany(runs));
        }
        Ok(cases)
    }

    fn cases_of(
        &self,
        policy: Policy,
        fleet: usize,
        cases: &mut Vec<Case>,
    ) -> Result<(), PlanError> {
        let swept = policy == self.rules.swept;
        let every = policy.has_windows() && (swept || self.rules.all_windows);
        let windows = self.windows.tried(every);
        // an age weighs in the price of leaving a rider behind, at which only batch looks; nor does
        // any other rule look ahead
        let batch = policy == Policy::Batch;
        for &window in windows {
            for &cap_s in &self.max_pickup_eta_s.values {
                for &weight in self.age_weight.tried(batch) {
                    for &plan in self.plan_ahead.tried(batch) {
                        for &demand in self.demand_ahead.tried(batch) {
                            let values = Values {
                                window,
                                cap_s,
                                weight,
                                plan,
                                demand,
                            };
                            let config = self.configured(values)?;
                            for &learned in self.sources(batch, demand) {
                                cases.push(Case {
                                    policy,
                                    fleet,
                                    config: config.clone(),
                                    learned,
                                    reference: swept && !learned && self.is_reference(values),
                                });
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// What stands for the next riders: the pickups of late, and where there is a choice what was
    /// learned.
    fn sources(&self, batch: bool, demand: DurationMs) -> &'static [bool] {
        if batch && demand > DurationMs::ZERO && self.demand_model.is_some() {
            &[false, true]
        } else {
            &[false]
        }
    }

    /// Whether the others are compared with these values.
    fn is_reference(&self, values: Values) -> bool {
        self.windows.is_reference(values.window)
            && self.max_pickup_eta_s.is_reference(values.cap_s)
            && self.age_weight.is_reference(values.weight)
            && self.plan_ahead.is_reference(values.plan)
            && self.demand_ahead.is_reference(values.demand)
    }

    /// The configuration with one value of each axis.
    fn configured(&self, values: Values) -> Result<RegionConfig, PlanError> {
        let Values {
            window,
            cap_s,
            weight,
            plan,
            demand,
        } = values;
        let mut patch = Map::new();
        let mut set = |name: &str, value: Value| patch.insert(name.into(), value);
        set("window_ms", window.get().into());
        // the budget does not matter to a replay, but has to fit into a short window
        let budget_ms = self.config.budget_ms.min(window).get();
        set("budget_ms", budget_ms.into());
        set("max_pickup_eta_s", cap_s.into());
        set("age_weight", weight.into());
        set("plan_ahead_ms", plan.get().into());
        set("demand_ahead_ms", demand.get().into());
        let refused = |path: &str, detail: String| {
            let (flag, value) = match path {
                "max_pickup_eta_s" | "idle_weight" => ("--max-pickup-eta", cap_s.to_string()),
                "age_weight" => ("--age-weight", weight.to_string()),
                "plan_ahead_ms" => ("--plan-ahead", plan.in_units()),
                "demand_ahead_ms" => ("--demand-ahead", demand.in_units()),
                _ => ("--windows", window.in_units()),
            };
            PlanError::Value {
                flag,
                value,
                detail,
            }
        };
        let patched = self.config.patched(&patch).map_err(|errors| {
            let path = errors.first().map_or("", |error| error.path.as_str());
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refused(path, all.join("; "))
        })?;
        match patched.clamped.first() {
            None => Ok(patched.config),
            Some(clamp) => {
                let ms = clamp.used.as_i64().filter(|_| clamp.path.ends_with("_ms"));
                let nearest = ms.map_or_else(
                    || clamp.used.to_string(),
                    |ms| DurationMs::new(ms).in_units(),
                );
                let detail = format!("outside its limits, the nearest is {nearest}");
                Err(refused(&clamp.path, detail))
            }
        }
    }
}

impl TuneFleet {
    /// Its size.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Sampled(size) => *size as usize,
            Self::Recorded(fleet) => fleet.len(),
        }
    }
}

impl Case {
    /// A time looked ahead, which is none under the rules that do not look.
    fn ahead(&self, time: DurationMs) -> i64 {
        if self.policy == Policy::Batch {
            time.get()
        } else {
            0
        }
    }

    /// What the report says of it.
    pub(super) fn setting(&self, fleets: &[TuneFleet]) -> Setting {
        let windows = self.policy.has_windows();
        Setting {
            policy: self.policy.name(),
            drivers: fleets[self.fleet].size(),
            window_ms: if windows {
                self.config.window_ms.get()
            } else {
                0
            },
            max_pickup_eta_s: self.config.max_pickup_eta_s,
            age_weight: self.config.age_weight,
            plan_ahead_ms: self.ahead(self.config.plan_ahead_ms),
            demand_ahead_ms: self.ahead(self.config.demand_ahead_ms),
            learned_demand: self.learned,
        }
    }
}
