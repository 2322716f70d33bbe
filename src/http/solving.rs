//! The stateless solve: a body in, an answer out, on a thread that may be busy.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kheya_solver::{Budget, Method, Options, SolveError};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    body::parse_now,
    certificate::certificate,
    fields::{Errors, Object, choice, entries, id, instant, integer, list, number, place},
    model::{constraints::constraints, solve::SolveAnswer},
    problem::{Code, Problem},
};
use crate::{
    config::FieldError,
    decision::{
        Batch, DecisionError, MAX_CLIENT_SECONDS, Phase, SnapshotError, SolveOptions,
        WindowFileError, WindowSnapshot, decide_batch, read_window,
    },
    domain::{DriverId, RequestId, RiderId, VehicleClass},
    eta::StraightLine,
};

/// Most requests of one call.
pub(crate) const MAX_REQUESTS: usize = 5_000;
/// Most drivers of one call.
pub(crate) const MAX_DRIVERS: usize = 50_000;
/// Most edges of one call.
pub(crate) const MAX_EDGES: usize = 1_000_000;
/// Longest time that a solve may be given.
pub(crate) const MAX_BUDGET_MS: u64 = 30_000;
/// Time that a solve is given which does not say.
const DEFAULT_BUDGET_MS: u64 = 5_000;
/// Cells of the dense method that one call may fill: it cannot be interrupted, and takes about
/// 100 ms for these.
const MAX_HUNGARIAN_CELLS: usize = 300 * 300;

/// Solves that may wait for a core.
const LINE: usize = 32;
/// How long they wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// One solve a core at once.
pub(crate) struct SolveSlots {
    running: Arc<Semaphore>,
    line: Arc<Semaphore>,
}

impl Default for SolveSlots {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            running: Arc::new(Semaphore::new(cores)),
            line: Arc::new(Semaphore::new(cores + LINE)),
        }
    }
}

impl SolveSlots {
    /// A core for one solve.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = || Problem::new(Code::Quota, "as many solves as may be are under way");
        let _place = Arc::clone(&self.line)
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let slot = Arc::clone(&self.running).acquire_owned();
        let slot = tokio::time::timeout(PATIENCE, slot)
            .await
            .map_err(|_| busy())?;
        slot.map_err(|_| busy())
    }
}

/// Solves the body of `POST /v1/solve`.
pub(crate) fn solve(body: &[u8], with_certificate: bool) -> Result<SolveAnswer, Problem> {
    let (snapshot, asked) = read_window(body).map_err(|error| unreadable(body, error))?;
    check_size(&snapshot, &asked)?;
    let options = Options {
        method: asked.method.unwrap_or(Method::Auto),
        budget: Some(Budget::wall(Duration::from_millis(
            asked.budget_ms.unwrap_or(DEFAULT_BUDGET_MS),
        ))),
        ..Options::default()
    };
    let eta = StraightLine::of(snapshot.config());
    let (mut since, mut solve_time) = (Instant::now(), Duration::ZERO);
    let batch = decide_batch(&snapshot, &eta, &options, |phase| {
        if phase == Phase::Solve {
            solve_time = since.elapsed();
        }
        since = Instant::now();
    });
    let Batch {
        decision, table, ..
    } = batch.map_err(|error| unsolvable(&error))?;
    let certificate = with_certificate
        .then(|| certificate(&snapshot, &table, &decision.constraints, &options))
        .transpose()?;
    Ok(SolveAnswer {
        certificate,
        ..SolveAnswer::new(decision, solve_time)
    })
}

fn check_size(snapshot: &WindowSnapshot, asked: &SolveOptions) -> Result<(), Problem> {
    let sizes = [
        ("requests", snapshot.requests().len(), MAX_REQUESTS),
        ("drivers", snapshot.drivers().len(), MAX_DRIVERS),
        ("edges", snapshot.edges().map_or(0, <[_]>::len), MAX_EDGES),
    ];
    for (name, given, most) in sizes {
        if given > most {
            let detail = format!("{given} {name}: at most {most} are taken in one call");
            return Err(Problem::too_large(detail));
        }
    }
    let [(_, requests, _), (_, drivers, _), _] = sizes;
    if asked.method == Some(Method::Hungarian)
        && requests * drivers.max(requests) > MAX_HUNGARIAN_CELLS
    {
        let detail = format!(
            "takes at most {MAX_HUNGARIAN_CELLS} cells (requests × drivers) here: use sparse"
        );
        return Err(Problem::invalid_field(
            "method",
            "out_of_range",
            "hungarian".into(),
            detail,
        ));
    }
    if let Some(ms) = asked
        .budget_ms
        .filter(|ms| !(1..=MAX_BUDGET_MS).contains(ms))
    {
        let detail = format!("must be within 1 and {MAX_BUDGET_MS}");
        return Err(Problem::invalid_field(
            "budget_ms",
            "out_of_range",
            ms.into(),
            detail,
        ));
    }
    Ok(())
}

fn unsolvable(error: &DecisionError) -> Problem {
    match error {
        DecisionError::Solve(
            SolveError::TooLargeForDense { .. } | SolveError::TooLargeForLp { .. },
        )
        | DecisionError::Graph(_) => {
            Problem::invalid_field("method", "out_of_range", Value::Null, error.to_string())
        }
        DecisionError::Solve(SolveError::CostsTooLargeForConstraints) => Problem::invalid_field(
            "constraints",
            "out_of_range",
            Value::Null,
            error.to_string(),
        ),
        DecisionError::Solve(SolveError::OtherSize { .. }) | DecisionError::Certificate(_) => {
            Problem::internal(error)
        }
    }
}

fn unreadable(body: &[u8], error: WindowFileError) -> Problem {
    let one = |path: &str, detail: &str| {
        Problem::invalid_field(path, "out_of_range", Value::Null, detail)
    };
    match error {
        WindowFileError::Json(error) => match parse_now(body) {
            Err(malformed) => malformed,
            Ok(value) => {
                let mut errors = Errors::default();
                check(value, &mut errors);
                if errors.is_empty() {
                    errors.add("", "wrong_type", &Value::Null, error.to_string());
                }
                Problem::invalid(errors.into_vec())
            }
        },
        WindowFileError::Format(_) => one("format", &error.to_string()),
        WindowFileError::Field { path, detail } => one(&path, &detail),
        WindowFileError::Snapshot(errors) => {
            Problem::invalid(errors.iter().map(snapshot_error).collect())
        }
        WindowFileError::Eta(errors) => {
            let named = errors.into_iter().map(|error| FieldError {
                path: format!("eta.{}", error.path),
                ..error
            });
            Problem::invalid(named.collect())
        }
    }
}

pub(crate) fn snapshot_error(error: &SnapshotError) -> FieldError {
    let (path, code, value) = match error {
        SnapshotError::Duplicate { path, id, .. } => (path, "duplicate", id.as_str().into()),
        SnapshotError::OutOfRange { path, value, .. } => (path, "out_of_range", (*value).into()),
        SnapshotError::UnknownId { path, id, .. } => (path, "unknown_id", id.as_str().into()),
        SnapshotError::Constraint { path, code, .. } => (path, *code, Value::Null),
        SnapshotError::NoPlace { path } => (path, "missing", Value::Null),
    };
    let whole = error.to_string();
    let detail = whole
        .strip_prefix(&format!("{path}: "))
        .unwrap_or(&whole)
        .to_owned();
    FieldError {
        path: path.clone(),
        code: code.into(),
        value,
        detail,
    }
}

/// Tells everything that is wrong with the shape of a body.
fn check(value: Value, errors: &mut Errors) {
    let Some(mut body) = Object::open(value, "", errors) else {
        return;
    };
    body.required_nested("requests", |value, path, errors| {
        each(value, path, errors, |object| {
            object.required("id", id(RequestId::new));
            object.optional("rider_id", id(RiderId::new));
            object.nested("pickup", place);
            object.optional("vehicle_classes", list(32, id(VehicleClass::new)));
            object.optional("requested_at_ms", instant);
            object.optional("unmatched_cost_s", number(0.0, MAX_CLIENT_SECONDS));
            object.optional("max_pickup_eta_s", number(0.0, MAX_CLIENT_SECONDS));
            object.optional("exclude_driver_ids", list(32, id(DriverId::new)));
        })
    });
    body.required_nested("drivers", |value, path, errors| {
        each(value, path, errors, |object| {
            object.required("id", id(DriverId::new));
            object.optional("lat", number(-90.0, 90.0));
            object.optional("lng", number(-180.0, 180.0));
            object.optional("at_ms", instant);
            object.optional("vehicle_class", id(VehicleClass::new));
            object.optional("acceptance_rate", number(0.0, 1.0));
            object.optional("idle_since_ms", instant);
            object.optional(
                "status",
                choice(&[("available", ()), ("busy", ()), ("offline", ())]),
            );
        })
    });
    body.nested("edges", |value, path, errors| {
        each(value, path, errors, |object| {
            object.required("request_id", id(RequestId::new));
            object.required("driver_id", id(DriverId::new));
            object.required("eta_s", number(0.0, MAX_CLIENT_SECONDS));
        })
    });
    body.nested("eta", |value, path, errors| {
        let mut object = Object::open(value, path, errors)?;
        object.required("model", choice(&[("straight_line", ())]));
        object.required("speed_kmh", number(1.0, 200.0));
        object.required("detour", number(1.0, 5.0));
        object.close();
        Some(())
    });
    body.nested("constraints", constraints);
    let methods = Method::ALL.map(|method| (method.name(), method));
    body.optional("method", choice(&methods));
    body.optional("budget_ms", integer(1, MAX_BUDGET_MS as i64));
    body.close();
}

fn each(
    value: Value,
    path: &str,
    errors: &mut Errors,
    read: impl Fn(&mut Object<'_>),
) -> Option<()> {
    for (i, entry) in entries(value, path, errors)?.into_iter().enumerate() {
        if let Some(mut object) = Object::open(entry, &format!("{path}[{i}]"), errors) {
            read(&mut object);
            object.close();
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn solved(body: &Value) -> SolveAnswer {
        solve(body.to_string().as_bytes(), true).unwrap()
    }

    #[test]
    fn the_prices_of_a_certificate_prove_the_cost() {
        let body = json!({
            "requests": [{"id": "b", "unmatched_cost_s": 100}, {"id": "a", "unmatched_cost_s": 100}, {"id": "c"}],
            "drivers": [{"id": "x"}, {"id": "y"}],
            "edges": [
                {"request_id": "a", "driver_id": "x", "eta_s": 10},
                {"request_id": "a", "driver_id": "y", "eta_s": 30},
                {"request_id": "b", "driver_id": "x", "eta_s": 20},
            ],
        });
        let answer = solved(&body);
        assert_eq!(answer.status, "optimal");
        let proof = answer.certificate.unwrap();
        assert!((proof.dual_bound_s - answer.total_cost_s).abs() < 1e-9);
        let prices: f64 = proof.request_prices.iter().map(|p| p.price_s).sum::<f64>()
            - proof.driver_prices.iter().map(|p| p.price_s).sum::<f64>();
        assert!((prices - answer.total_cost_s).abs() < 1e-9);
    }

    #[test]
    fn every_wrong_field_of_a_body_is_told() {
        let body = json!({
            "requests": [{"id": 1}, {"id": "a", "pickup": {"lat": 91, "lng": 0}}],
            "drivers": [{"id": "x", "lat": "1"}],
            "method": "magic", "constraints": [{"name": 1}], "budget_ms": -1,
        });
        let problem = solve(body.to_string().as_bytes(), false).unwrap_err();
        let told: Value = serde_json::from_str(&problem.to_json()).unwrap();
        assert_eq!(told["errors"].as_array().unwrap().len(), 6, "{told}");
    }

    #[test]
    fn an_empty_window_is_solved() {
        let answer = solved(&json!({"requests": [], "drivers": []}));
        assert_eq!(
            (answer.status.as_str(), answer.total_cost_s),
            ("empty", 0.0)
        );
    }

    #[test]
    fn a_body_that_is_no_json_is_malformed() {
        assert_eq!(solve(b"{", false).unwrap_err().code(), Code::Malformed);
        assert_eq!(solve(b"[]", false).unwrap_err().code(), Code::Invalid);
    }
}
