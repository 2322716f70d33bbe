//! Claims: the calls that end them one way or another, and the list of live ones.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::drivers::ClaimBody;
use crate::{
    domain::{DriverId, DurationMs, Fence, MAX_VERSION, RequestId, UnixMs},
    http::{
        fields::{Errors, Object, choice, id, integer},
        problem::Problem,
    },
    protocol::{ClaimAnswer, ClaimKey, ClaimState, ClaimView, ReleaseReason, TripOutcome},
};

/// The claim that a confirm is about.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmBody {
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
    /// The claim's version.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub fence: u64,
}

/// The claim that is given back, and why.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
    /// The claim's version.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub fence: u64,
    /// Why.
    pub reason: ReleaseReasonName,
}

/// Why a driver is given back.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReleaseReason)]
pub enum ReleaseReasonName {
    /// The driver said no.
    Declined,
    /// The driver said nothing.
    Timeout,
    /// The offer did not arrive: no other before the driver's next ping.
    Undeliverable,
    /// The driver cancelled.
    DriverCancelled,
}

/// The trip that is over, and how.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
    /// The claim's version.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub fence: u64,
    /// How; left out: `done`.
    pub outcome: Option<TripOutcomeName>,
}

/// How a trip ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TripOutcome)]
pub enum TripOutcomeName {
    /// It was driven.
    Done,
    /// The rider cancelled.
    RiderCancelled,
    /// The driver cancelled.
    DriverCancelled,
    /// The rider was not there.
    NoShow,
}

/// The claim whose lease is to end later.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendBody {
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
    /// The claim's version.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub fence: u64,
    /// The lease counts this long from now, within the rails.
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub lease_ms: i64,
}

/// The answer to a call about a claim.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimCallAnswer {
    /// The driver.
    pub driver_id: String,
    /// The request.
    pub request_id: String,
    /// The claim's version.
    pub fence: u64,
    /// The driver's state after the call: `offered`, `on_trip`, `available` or `offline`.
    #[schema(value_type = String)]
    pub state: ClaimState,
    /// The store's clock when the call was first executed.
    #[schema(value_type = i64)]
    pub now_ms: UnixMs,
    /// After an extension: the new end of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub lease_until_ms: Option<UnixMs>,
}

/// A live claim.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimEntry {
    /// The driver.
    pub driver_id: String,
    /// What it is held for.
    #[serde(flatten)]
    pub claim: ClaimBody,
}

/// A page of live claims, by driver.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimsPage {
    /// The claims.
    pub claims: Vec<ClaimEntry>,
    /// Go on after this driver; `null` at the end.
    pub next: Option<String>,
}

const REASONS: [(&str, ReleaseReason); 4] = [
    ("declined", ReleaseReason::Declined),
    ("timeout", ReleaseReason::Timeout),
    ("undeliverable", ReleaseReason::Undeliverable),
    ("driver_cancelled", ReleaseReason::DriverCancelled),
];

const OUTCOMES: [(&str, TripOutcome); 4] = [
    ("done", TripOutcome::Done),
    ("rider_cancelled", TripOutcome::RiderCancelled),
    ("driver_cancelled", TripOutcome::DriverCancelled),
    ("no_show", TripOutcome::NoShow),
];

/// The states of a live claim, by their names.
pub(crate) const STATES: [(&str, ClaimState); 2] = [
    ("offered", ClaimState::Offered),
    ("on_trip", ClaimState::OnTrip),
];

/// Reads the claim of a call, and what else `more` takes from its body.
fn call<T>(
    driver_id: DriverId,
    body: Value,
    more: impl FnOnce(&mut Object<'_>) -> Option<T>,
) -> Result<(ClaimKey, T), Problem> {
    let mut errors = Errors::default();
    let read = Object::open(body, "", &mut errors).and_then(|mut object| {
        let request_id = object.required("request_id", id(RequestId::new));
        let fence = object.required("fence", integer(0, MAX_VERSION as i64));
        let more = more(&mut object);
        object.close();
        let key = ClaimKey {
            driver_id,
            request_id: request_id?,
            fence: Fence::new(fence?.unsigned_abs()),
        };
        Some((key, more?))
    });
    match read {
        Some(read) if errors.is_empty() => Ok(read),
        _ => Err(Problem::invalid(errors.into_vec())),
    }
}

pub(crate) fn confirm(driver: DriverId, body: Value) -> Result<ClaimKey, Problem> {
    call(driver, body, |_| Some(())).map(|(key, ())| key)
}

pub(crate) fn release(driver: DriverId, body: Value) -> Result<(ClaimKey, ReleaseReason), Problem> {
    call(driver, body, |object| {
        object.required("reason", choice(&REASONS))
    })
}

pub(crate) fn complete(driver: DriverId, body: Value) -> Result<(ClaimKey, TripOutcome), Problem> {
    call(driver, body, |object| {
        Some(
            object
                .optional("outcome", choice(&OUTCOMES))
                .unwrap_or_default(),
        )
    })
}

pub(crate) fn extend(driver: DriverId, body: Value) -> Result<(ClaimKey, DurationMs), Problem> {
    let lease = |object: &mut Object<'_>| object.required("lease_ms", integer(1, 86_400_000));
    call(driver, body, lease).map(|(key, lease)| (key, DurationMs::new(lease)))
}

impl From<ClaimAnswer> for ClaimCallAnswer {
    fn from(answer: ClaimAnswer) -> Self {
        Self {
            driver_id: answer.claim.driver_id.to_string(),
            request_id: answer.claim.request_id.to_string(),
            fence: answer.claim.fence.get(),
            state: answer.state,
            now_ms: answer.now_ms,
            lease_until_ms: answer.lease_until_ms,
        }
    }
}

impl From<&ClaimView> for ClaimEntry {
    fn from(view: &ClaimView) -> Self {
        Self {
            driver_id: view.driver_id.to_string(),
            claim: ClaimBody::from(&view.claim),
        }
    }
}
