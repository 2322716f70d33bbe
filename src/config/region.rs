//! The configuration of one region, changeable while it is live.
//!
//! Promise: a [`RegionConfig`] always lies inside its guard rails and passes its cross-checks; the
//! only ways to one are the defaults and [`RegionConfig::patched`].

use std::{fmt, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::domain::DurationMs;

/// The values of a region's configuration. Read through [`RegionConfig`], which guarantees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionValues {
    /// Length of a window.
    pub window_ms: DurationMs,
    /// Time a batch decision may take after the close.
    pub budget_ms: DurationMs,
    /// Time after the budget before another node runs the fallback.
    pub grace_ms: DurationMs,
    /// Earliest early close after a window opened.
    pub min_window_ms: DurationMs,
    /// Requests that close a window early.
    pub max_requests: u32,
    /// Requests of one snapshot, the oldest first; the rest are deferred.
    pub max_snapshot_requests: u32,
    /// Pending requests before the region refuses more.
    pub max_pending: u32,
    /// Time a driver has to answer an offer.
    pub offer_window_ms: DurationMs,
    /// Time a claim is held; longer than the offer window, so that a late accept still counts.
    pub lease_ms: DurationMs,
    /// Time a driver is not offered again what it declined.
    pub decline_cooldown_ms: DurationMs,
    /// Time an ended request is remembered.
    pub request_memory_ms: DurationMs,
    /// Drivers free within this time are looked ahead to; 0 is off.
    pub plan_ahead_ms: DurationMs,
    /// Span of recent pickups that stands for the next one; 0 is off.
    pub demand_ahead_ms: DurationMs,
    /// Time a request waits for an assignment before it expires.
    pub max_wait_ms: DurationMs,
    /// Oldest position that still counts.
    pub max_location_age_ms: DurationMs,
    /// Time a driver's record is kept after its last ping.
    pub driver_ttl_ms: DurationMs,
    /// Search radii, rising.
    pub search_radii_km: Vec<f64>,
    /// Drivers that make a radius final.
    pub min_candidates: u32,
    /// Candidates kept for a request.
    pub max_candidates: u32,
    /// Longest pickup a rider is offered.
    pub max_pickup_eta_s: f64,
    /// Speed of the straight-line ETA.
    pub speed_kmh: f64,
    /// Road kilometres for each straight-line kilometre.
    pub detour: f64,
    /// Weight of a request's age in its unmatched cost.
    pub age_weight: f64,
    /// Weight of a driver's idle time in the cost of a pair.
    pub idle_weight: f64,
    /// Cost of an offer that is declined.
    pub redispatch_s: f64,
    /// Idle time beyond which a driver gains no more.
    pub idle_cap_s: f64,
    /// Candidates tried for a request in a fallback.
    pub max_attempts: u32,
    /// Intake refused, claims served.
    pub paused: bool,
    /// Unmatched cost of a phantom that a past request stands for; a learned one costs what a rider
    /// does.
    pub phantom_unmatched_s: f64,
    /// Longest time, since a window first planned it, that a request is planned; then only free
    /// drivers are its candidates. Not written where it is the default, so that recordings of
    /// before it came stay what they are.
    #[serde(default = "max_planned", skip_serializing_if = "is_max_planned")]
    pub max_planned_ms: DurationMs,
    /// Time past its announced end after which a trip is no longer looked ahead to. Not written
    /// where it is the default, like the one before.
    #[serde(default = "overdue", skip_serializing_if = "is_overdue")]
    pub overdue_ms: DurationMs,
}

const fn max_planned() -> DurationMs {
    DurationMs::new(60_000)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_max_planned(value: &DurationMs) -> bool {
    *value == max_planned()
}

const fn overdue() -> DurationMs {
    DurationMs::new(30_000)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_overdue(value: &DurationMs) -> bool {
    *value == overdue()
}

impl Default for RegionValues {
    fn default() -> Self {
        Self {
            window_ms: DurationMs::new(3000),
            budget_ms: DurationMs::new(500),
            grace_ms: DurationMs::new(250),
            min_window_ms: DurationMs::new(500),
            max_requests: 500,
            max_snapshot_requests: 2000,
            max_pending: 5000,
            offer_window_ms: DurationMs::new(12_000),
            lease_ms: DurationMs::new(15_000),
            decline_cooldown_ms: DurationMs::new(300_000),
            request_memory_ms: DurationMs::new(3_600_000),
            plan_ahead_ms: DurationMs::ZERO,
            demand_ahead_ms: DurationMs::ZERO,
            max_wait_ms: DurationMs::new(600_000),
            max_location_age_ms: DurationMs::new(15_000),
            driver_ttl_ms: DurationMs::new(600_000),
            search_radii_km: vec![2.0, 4.0, 7.0],
            min_candidates: 5,
            max_candidates: 40,
            max_pickup_eta_s: 900.0,
            speed_kmh: 25.0,
            detour: 1.3,
            age_weight: 0.0,
            idle_weight: 0.0,
            redispatch_s: 0.0,
            idle_cap_s: 600.0,
            max_attempts: 10,
            paused: false,
            phantom_unmatched_s: 300.0,
            max_planned_ms: max_planned(),
            overdue_ms: overdue(),
        }
    }
}

/// What a field holds, and the rails it is kept within.
enum Rail {
    /// Whole number within a range.
    Integer(i64, i64),
    /// Number within a range.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One to [`MAX_RADII`] rising numbers, each within a range.
    Rising(f64, f64),
}

const MAX_RADII: usize = 8;
const DAY_MS: i64 = 86_400_000;

/// Every field with its rails. A duration that leads to work or memory has a ceiling.
const RAILS: &[(&str, Rail)] = &[
    ("window_ms", Rail::Integer(500, 30_000)),
    ("budget_ms", Rail::Integer(1, 30_000)),
    ("grace_ms", Rail::Integer(50, 10_000)),
    ("min_window_ms", Rail::Integer(100, 30_000)),
    ("max_requests", Rail::Integer(1, 10_000)),
    // 64 claim batches of 250 pairs: a window this large and its repair both fit
    ("max_snapshot_requests", Rail::Integer(1, 8_000)),
    ("max_pending", Rail::Integer(1, 100_000)),
    ("offer_window_ms", Rail::Integer(1_000, 58_000)),
    ("lease_ms", Rail::Integer(3_000, 60_000)),
    ("decline_cooldown_ms", Rail::Integer(0, DAY_MS)),
    ("request_memory_ms", Rail::Integer(60_000, DAY_MS)),
    // further ahead than ten minutes nobody knows where a trip ends, or who will ask
    ("plan_ahead_ms", Rail::Integer(0, 600_000)),
    ("demand_ahead_ms", Rail::Integer(0, 600_000)),
    ("max_wait_ms", Rail::Integer(1_000, DAY_MS)),
    ("max_location_age_ms", Rail::Integer(1_000, 600_000)),
    ("driver_ttl_ms", Rail::Integer(10_000, DAY_MS)),
    ("search_radii_km", Rail::Rising(0.1, 50.0)),
    ("min_candidates", Rail::Integer(1, 1_000)),
    ("max_candidates", Rail::Integer(1, 1_000)),
    ("max_pickup_eta_s", Rail::Number(10.0, 7_200.0)),
    ("speed_kmh", Rail::Number(1.0, 200.0)),
    ("detour", Rail::Number(1.0, 5.0)),
    ("age_weight", Rail::Number(0.0, 10.0)),
    ("idle_weight", Rail::Number(0.0, 10.0)),
    ("redispatch_s", Rail::Number(0.0, 3_600.0)),
    ("idle_cap_s", Rail::Number(0.0, 86_400.0)),
    ("max_attempts", Rail::Integer(1, 1_000)),
    ("paused", Rail::Flag),
    ("phantom_unmatched_s", Rail::Number(0.0, 86_400.0)),
    ("max_planned_ms", Rail::Integer(0, 600_000)),
    ("overdue_ms", Rail::Integer(0, 600_000)),
];

/// A value that was moved to the nearest rail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clamped {
    /// Name of the field.
    pub path: String,
    /// The value asked for.
    pub asked: Value,
    /// The value used.
    pub used: Value,
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// Name of the field.
    pub path: String,
    /// What kind of error it is: `unknown_field`, `wrong_type` or `cross_check`.
    pub code: String,
    /// The offending value.
    pub value: Value,
    /// What would be right.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (given {})", self.path, self.detail, self.value)
    }
}

impl std::error::Error for FieldError {}

/// A configuration after a patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The new configuration.
    pub config: RegionConfig,
    /// What was moved to a rail.
    pub clamped: Vec<Clamped>,
}

/// A checked region configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
#[serde(transparent)]
pub struct RegionConfig(RegionValues);

impl Deref for RegionConfig {
    type Target = RegionValues;

    fn deref(&self) -> &RegionValues {
        &self.0
    }
}

impl RegionConfig {
    /// Whether decisions look ahead: to drivers who will be free, or to the next requests.
    pub fn looks_ahead(&self) -> bool {
        self.plan_ahead_ms > DurationMs::ZERO || self.demand_ahead_ms > DurationMs::ZERO
    }

    /// The same without looking ahead.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self(RegionValues {
            plan_ahead_ms: DurationMs::ZERO,
            demand_ahead_ms: DurationMs::ZERO,
            ..self.0.clone()
        })
    }

    /// Every setting by its name, those too that are not written where they are the default.
    pub fn settings(&self) -> Map<String, Value> {
        fields(&self.0)
    }

    /// [`Self::settings`] in place of the written form, for readers who are told everything.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_settings<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.settings().serialize(s)
    }

    /// Applies a JSON merge patch: a value outside its rails is clamped and listed, `null` restores
    /// the default.
    ///
    /// # Errors
    /// Every unknown field, wrong type and failed cross-check at once; nothing is changed then.
    pub fn patched(&self, patch: &Map<String, Value>) -> Result<Patched, Vec<FieldError>> {
        let mut values = fields(&self.0);
        let defaults = fields(&RegionValues::default());
        let mut errors = Vec::new();
        let mut clamped = Vec::new();
        for (path, asked) in patch {
            let Some((_, rail)) = RAILS.iter().find(|(name, _)| name == path) else {
                errors.push(error(
                    path,
                    "unknown_field",
                    asked,
                    "no such setting".into(),
                ));
                continue;
            };
            if asked.is_null() {
                values.insert(path.clone(), defaults[path.as_str()].clone());
                continue;
            }
            match rail.fit(asked) {
                Err(detail) => errors.push(error(path, "wrong_type", asked, detail)),
                Ok(used) => {
                    if !same_value(&used, asked) {
                        let (path, asked) = (path.clone(), asked.clone());
                        clamped.push(Clamped {
                            path,
                            asked,
                            used: used.clone(),
                        });
                    }
                    values.insert(path.clone(), used);
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let values: RegionValues = serde_json::from_value(Value::Object(values))
            .map_err(|e| vec![error("", "wrong_type", &Value::Null, e.to_string())])?;
        let errors = cross_checks(&values);
        if errors.is_empty() {
            Ok(Patched {
                config: Self(values),
                clamped,
            })
        } else {
            Err(errors)
        }
    }
}

impl<'de> Deserialize<'de> for RegionConfig {
    /// Reads a recorded or written configuration: omitted fields take their defaults, and a value
    /// outside its rails is an error here, since nobody is there to be told of a clamp.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let patch = Map::deserialize(d)?;
        let patched = Self::default().patched(&patch).map_err(|errors| {
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            de::Error::custom(all.join("; "))
        })?;
        match patched.clamped.first() {
            None => Ok(patched.config),
            Some(Clamped { path, asked, used }) => Err(de::Error::custom(format!(
                "{path}: {asked} is outside its limits (nearest: {used})"
            ))),
        }
    }
}

impl Rail {
    /// The nearest value inside the rail, or what the field should hold.
    fn fit(&self, asked: &Value) -> Result<Value, String> {
        match *self {
            Self::Flag => match asked {
                Value::Bool(_) => Ok(asked.clone()),
                _ => Err("must be true or false".into()),
            },
            Self::Integer(min, max) => {
                // 3000.0 is the same number as 3000 in JSON; a fraction is refused, a value beyond
                // i64 clamps like any other
                let number = asked.as_f64().filter(|n| n.fract() == 0.0);
                let number = number.ok_or("must be a whole number")?;
                Ok(asked
                    .as_i64()
                    .unwrap_or(number as i64)
                    .clamp(min, max)
                    .into())
            }
            Self::Number(min, max) => {
                let number = asked.as_f64().ok_or("must be a number")?;
                Ok(number.clamp(min, max).into())
            }
            Self::Rising(min, max) => {
                let list = asked
                    .as_array()
                    .filter(|l| (1..=MAX_RADII).contains(&l.len()));
                let list = list.ok_or_else(|| format!("must be 1 to {MAX_RADII} numbers"))?;
                let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
                let numbers = numbers.ok_or("must be numbers")?;
                if !numbers.is_sorted_by(|a, b| a < b) {
                    return Err("must rise from each to the next".into());
                }
                let mut used: Vec<f64> = numbers.iter().map(|n| n.clamp(min, max)).collect();
                used.dedup();
                Ok(used.into())
            }
        }
    }
}

fn cross_checks(v: &RegionValues) -> Vec<FieldError> {
    let ms = |d: DurationMs| Value::from(d.get());
    let mut errors = Vec::new();
    let mut check = |holds: bool, path: &str, value: Value, detail: &str| {
        if !holds {
            errors.push(error(path, "cross_check", &value, detail.into()));
        }
    };
    check(
        v.budget_ms <= v.window_ms,
        "budget_ms",
        ms(v.budget_ms),
        "must not exceed window_ms",
    );
    check(
        v.min_window_ms <= v.window_ms,
        "min_window_ms",
        ms(v.min_window_ms),
        "must not exceed window_ms",
    );
    check(
        v.lease_ms.get() >= v.offer_window_ms.get() + 2000,
        "lease_ms",
        ms(v.lease_ms),
        "must be at least offer_window_ms + 2000",
    );
    check(
        v.driver_ttl_ms >= v.max_location_age_ms,
        "driver_ttl_ms",
        ms(v.driver_ttl_ms),
        "must be at least max_location_age_ms",
    );
    check(
        v.min_candidates <= v.max_candidates,
        "min_candidates",
        v.min_candidates.into(),
        "must not exceed max_candidates",
    );
    check(
        v.idle_weight * v.idle_cap_s <= v.max_pickup_eta_s,
        "idle_weight",
        v.idle_weight.into(),
        "idle_weight × idle_cap_s must not exceed max_pickup_eta_s",
    );
    errors
}

fn fields(values: &RegionValues) -> Map<String, Value> {
    let mut map = match serde_json::to_value(values) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    for (name, value) in [
        ("max_planned_ms", values.max_planned_ms),
        ("overdue_ms", values.overdue_ms),
    ] {
        map.insert(name.into(), value.get().into());
    }
    map
}

fn error(path: &str, code: &str, value: &Value, detail: String) -> FieldError {
    FieldError {
        path: path.into(),
        code: code.into(),
        value: value.clone(),
        detail,
    }
}

/// Whether two JSON values are the same numbers, `3` and `3.0` alike.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Number(_), Value::Number(_)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(value: Value) -> Result<Patched, Vec<FieldError>> {
        let Value::Object(map) = value else {
            panic!("not an object")
        };
        RegionConfig::default().patched(&map)
    }

    #[test]
    fn every_field_has_rails_and_its_default_lies_inside() {
        let defaults = fields(&RegionValues::default());
        let railed: std::collections::BTreeSet<_> =
            RAILS.iter().map(|(n, _)| (*n).to_owned()).collect();
        assert_eq!(
            defaults
                .keys()
                .cloned()
                .collect::<std::collections::BTreeSet<_>>(),
            railed
        );
        let same = patch(Value::Object(defaults)).unwrap();
        assert_eq!(same.config, RegionConfig::default());
        assert_eq!(same.clamped, []);
    }

    #[test]
    fn a_value_outside_its_rails_is_clamped_and_listed() {
        let p = patch(json!({"window_ms": 99, "budget_ms": 400, "search_radii_km": [1, 99.5]}))
            .unwrap();
        assert_eq!(p.config.window_ms.get(), 500);
        assert_eq!(p.config.search_radii_km, [1.0, 50.0]);
        let paths: Vec<_> = p.clamped.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(paths, ["search_radii_km", "window_ms"]);
    }

    #[test]
    fn null_restores_the_default() {
        let Value::Object(first) = json!({"window_ms": 5000}) else {
            panic!()
        };
        let changed = RegionConfig::default().patched(&first).unwrap().config;
        let Value::Object(back) = json!({"window_ms": null}) else {
            panic!()
        };
        assert_eq!(
            changed.patched(&back).unwrap().config,
            RegionConfig::default()
        );
    }

    #[test]
    fn all_errors_are_told_at_once() {
        let errors = patch(json!({"window": 1, "budget_ms": "x", "paused": 0, "grace_ms": 1.5}))
            .unwrap_err();
        assert_eq!(errors.len(), 4, "{errors:?}");
    }

    #[test]
    fn cross_checks_refuse_the_whole_patch() {
        for bad in [
            json!({"lease_ms": 13_000}),
            json!({"window_ms": 500, "budget_ms": 501}),
            json!({"min_candidates": 41}),
            json!({"idle_weight": 2}),
            json!({"min_window_ms": 4000}),
        ] {
            let errors = patch(bad.clone()).unwrap_err();
            assert_eq!(errors[0].code, "cross_check", "{bad}");
        }
    }

    #[test]
    fn a_written_configuration_must_lie_inside_the_rails() {
        assert!(serde_json::from_value::<RegionConfig>(json!({"window_ms": 5000})).is_ok());
        let error = serde_json::from_value::<RegionConfig>(json!({"window_ms": 5})).unwrap_err();
        assert!(error.to_string().contains("window_ms"), "{error}");
    }
}
