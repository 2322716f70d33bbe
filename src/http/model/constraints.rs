//! Side constraints in bodies and answers.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::drivers::IdText;
use crate::{
    decision::{ConstraintFacts, MAX_BOUND, SideConstraint},
    domain::{DriverId, RequestId},
    http::fields::{Errors, Object, Read, entries, id, integer, list, text},
};

/// Most ids of one list: as many drivers as a call may have.
const MAX_MEMBERS: usize = 50_000;

/// A cap, a floor or both on the chosen pairs whose driver is in `drivers` and whose request is in
/// `requests`. A floor that cannot be met is met as far as possible.
#[derive(Serialize, ToSchema)]
#[schema(as = Constraint)]
#[serde(deny_unknown_fields)]
pub struct ConstraintBody {
    /// No two have the same.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// Drivers whose pairs count; left out: all.
    #[schema(max_items = 50_000, nullable = false)]
    pub drivers: Option<Vec<IdText>>,
    /// Requests whose pairs count; left out: all.
    #[schema(max_items = 50_000, nullable = false)]
    pub requests: Option<Vec<IdText>>,
    /// At most so many pairs. `max` or `min` is needed.
    #[schema(minimum = 0, maximum = 1_000_000, nullable = false)]
    pub max: Option<u32>,
    /// At least so many, not above `max`.
    #[schema(minimum = 0, maximum = 1_000_000, nullable = false)]
    pub min: Option<u32>,
}

/// What became of a constraint.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConstraintReport {
    /// Its name.
    pub name: String,
    /// Chosen pairs that it counts.
    pub count: u32,
    /// Its cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max: Option<u32>,
    /// Its floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min: Option<u32>,
    /// Pairs that its floor lacks, where it could not be met.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub shortfall: Option<u32>,
    /// What it adds to the cost of each pair that it counts: above 0 for a cap that binds (about what
    /// one pair more would save), below 0 for a floor that does (about what its last pair costs).
    pub multiplier_s: f64,
}

impl ConstraintReport {
    /// The reports of a decision; none where there are no constraints.
    pub(crate) fn all(facts: &[ConstraintFacts]) -> Option<Vec<Self>> {
        let reports: Vec<Self> = facts.iter().map(Self::from).collect();
        Some(reports).filter(|reports| !reports.is_empty())
    }
}

impl From<&ConstraintFacts> for ConstraintReport {
    fn from(facts: &ConstraintFacts) -> Self {
        Self {
            name: facts.name.clone(),
            count: facts.count,
            max: facts.max,
            min: facts.min,
            shortfall: Some(facts.shortfall).filter(|&shortfall| shortfall > 0),
            multiplier_s: facts.multiplier.as_seconds(),
        }
    }
}

/// Reads the constraints of a body; how they fit together is checked later.
pub(crate) fn constraints(
    value: Value,
    path: &str,
    errors: &mut Errors,
) -> Option<Vec<SideConstraint>> {
    let mut constraints = Vec::new();
    for (i, entry) in entries(value, path, errors)?.into_iter().enumerate() {
        let Some(mut object) = Object::open(entry, &format!("{path}[{i}]"), errors) else {
            continue;
        };
        let name = object.required("name", text);
        let drivers = object.optional("drivers", list(MAX_MEMBERS, id(DriverId::new)));
        let requests = object.optional("requests", list(MAX_MEMBERS, id(RequestId::new)));
        let (max, min) = (object.optional("max", count), object.optional("min", count));
        object.close();
        constraints.extend(name.map(|name| SideConstraint {
            name,
            drivers,
            requests,
            max,
            min,
            standing: 0,
        }));
    }
    Some(constraints)
}

fn count(value: &Value) -> Read<u32> {
    integer(0, MAX_BOUND.into())(value).map(|count| count as u32)
}
