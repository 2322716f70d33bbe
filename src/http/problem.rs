//! Problem details (RFC 9457): the one shape of every error answer.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{config::FieldError, store::StoreError};

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $status:ident $title:literal;)*) => {
        /// What went wrong, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of their statuses.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it is written in answers.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$variant => StatusCode::$status,)*
                }
            }

            const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)*
                }
            }
        }
    };
}

codes! {
    /// The body is no JSON, the path no UTF-8.
    Malformed = "malformed" BAD_REQUEST "The request cannot be read";
    /// No token, or one that is not known.
    Unauthenticated = "unauthenticated" UNAUTHORIZED "A valid token is needed";
    /// The token may not do this, or not in this region.
    Forbidden = "forbidden" FORBIDDEN "The token does not allow this";
    /// No such path.
    NotFound = "not_found" NOT_FOUND "There is nothing at this path";
    /// The region does not exist (yet).
    UnknownRegion = "unknown_region" NOT_FOUND "The region is not known";
    /// The request was never here, or is forgotten.
    UnknownRequest = "unknown_request" NOT_FOUND "The request is not known";
    /// The driver was never here, or is forgotten.
    UnknownDriver = "unknown_driver" NOT_FOUND "The driver is not known";
    /// The window is not sealed, or its report is no longer kept.
    UnknownWindow = "unknown_window" NOT_FOUND "There is no report of this window";
    /// The path exists, the method there does not.
    MethodNotAllowed = "method_not_allowed" METHOD_NOT_ALLOWED "The path does not have this method";
    /// The body did not arrive in time.
    BodyTimeout = "body_timeout" REQUEST_TIMEOUT "The body did not arrive in time";
    /// The driver is held for a request.
    Held = "held" CONFLICT "The driver is held for a request";
    /// The id stands for another body.
    IdConflict = "id_conflict" CONFLICT "The id stands for another body";
    /// The lease ended before the call came.
    LeaseExpired = "lease_expired" CONFLICT "The lease is over";
    /// The trip is on, or was.
    AlreadyConfirmed = "already_confirmed" CONFLICT "The request is confirmed";
    /// The request ended otherwise.
    RequestClosed = "request_closed" CONFLICT "The request has ended";
    /// Only a confirmed claim can be completed.
    NotConfirmed = "not_confirmed" CONFLICT "The claim is not confirmed";
    /// The fence is not that of the live claim.
    FenceStale = "fence_stale" CONFLICT "The fence is not current";
    /// In a quarantine: the store does not hold what the call is about.
    NotHeld = "not_held" CONFLICT "The store does not hold this";
    /// The window id stands for another body.
    WindowConflict = "window_conflict" CONFLICT "The window id stands for another body";
    /// The window is still being decided.
    WindowInProgress = "window_in_progress" CONFLICT "The window is still being decided";
    /// The call tells of another life of the data.
    GenerationChanged = "generation_changed" CONFLICT "The store's data began a new life";
    /// The events after the cursor are no longer kept.
    CursorGone = "cursor_gone" GONE "The cursor is gone";
    /// The configuration has another version than asked for.
    VersionMismatch = "version_mismatch" PRECONDITION_FAILED "Another version of the configuration holds";
    /// A body or list over its limit.
    TooLarge = "too_large" PAYLOAD_TOO_LARGE "The request is over a limit";
    /// A content type or coding that is not read here.
    UnsupportedMediaType = "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "The content type is not supported";
    /// Fields are wrong; each is listed.
    Invalid = "invalid" UNPROCESSABLE_ENTITY "Some fields are not valid";
    /// The caller has as much under way as it may.
    Quota = "quota" TOO_MANY_REQUESTS "Too many calls at once";
    /// A defect of the service.
    Internal = "internal" INTERNAL_SERVER_ERROR "The service failed";
    /// The region has as much to do, or holds as much, as it may.
    RegionFull = "region_full" SERVICE_UNAVAILABLE "The region is full";
    /// The store lost data; what is true is being told first.
    Quarantined = "quarantined" SERVICE_UNAVAILABLE "The region is quarantined";
    /// Ops paused the intake.
    Paused = "paused" SERVICE_UNAVAILABLE "The region is paused";
    /// The store cannot be reached.
    StoreUnavailable = "store_unavailable" SERVICE_UNAVAILABLE "The store cannot be reached";
    /// The node is about to stop.
    ShuttingDown = "shutting_down" SERVICE_UNAVAILABLE "The node is shutting down";
    /// The node is not ready (any more).
    NotReady = "not_ready" SERVICE_UNAVAILABLE "The node is not ready";
    /// The store holds as many regions as it may.
    TooManyRegions = "too_many_regions" SERVICE_UNAVAILABLE "There are too many regions";
    /// The call may or may not have been executed: repeat it.
    OutcomeUnknown = "outcome_unknown" GATEWAY_TIMEOUT "The outcome is not known; repeat the call";
}

/// Seconds after which an overloaded or stopping node may be asked again.
const RETRY_SOON_S: u64 = 1;

/// An error answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    more: Map<String, Value>,
    retry_after_s: Option<u64>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    errors: &'a [FieldError],
    #[serde(flatten)]
    more: &'a Map<String, Value>,
}

impl Problem {
    /// A problem with its detail in words. Those that pass by themselves say when to come again.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let passes = matches!(
            code,
            Code::Quota
                | Code::RegionFull
                | Code::Quarantined
                | Code::Paused
                | Code::StoreUnavailable
                | Code::ShuttingDown
                | Code::NotReady
                | Code::TooManyRegions
                | Code::WindowInProgress
                | Code::OutcomeUnknown
        );
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            more: Map::new(),
            retry_after_s: passes.then_some(RETRY_SOON_S),
        }
    }

    /// 422 with every invalid field.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] if one.path.is_empty() => one.detail.clone(),
            [one] => format!("{}: {}", one.path, one.detail),
            many => format!("{} fields are not valid", many.len()),
        };
        Self::new(Code::Invalid, detail).with_errors(errors)
    }

    /// 422 with one invalid field.
    pub fn invalid_field(path: &str, code: &str, value: Value, detail: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError {
            path: path.into(),
            code: code.into(),
            value,
            detail: detail.into(),
        }])
    }

    /// 413 for a list or body over its limit.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(Code::TooLarge, detail)
    }

    /// 500. The cause is for the log, not for the caller.
    pub fn internal(cause: &impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal failure");
        Self::new(Code::Internal, "the failure is in the service's log")
    }

    /// The same with a list of errors.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }

    /// The same with a member of its own.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }

    /// The same with `Retry-After`, in whole seconds, at least one.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: i64) -> Self {
        self.retry_after_s = Some(u64::try_from(ms).unwrap_or(0).div_ceil(1000).max(1));
        self
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Its body as JSON text.
    pub fn to_json(&self) -> String {
        let body = Body {
            r#type: format!("urn:kheya:problem:{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            code: self.code.as_str(),
            errors: &self.errors,
            more: &self.more,
        };
        // strings, numbers and JSON values: it always has a JSON form
        serde_json::to_string(&body).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content_type = [(header::CONTENT_TYPE, PROBLEM_JSON)];
        let mut response = (self.code.status(), content_type, self.to_json()).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.code == Code::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"kheya\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(self.code);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) => {
                tracing::warn!(%cause, "the store cannot be reached");
                Self::new(Code::StoreUnavailable, "the store cannot be reached")
            }
            StoreError::OutcomeUnknown(cause) => {
                tracing::warn!(%cause, "the outcome of a store call is not known");
                Self::new(
                    Code::OutcomeUnknown,
                    "the call may have been executed: repeat it as it was",
                )
            }
            StoreError::UnknownRegion => Self::new(
                Code::UnknownRegion,
                "a region comes to be with its first ping, request or configuration",
            ),
            StoreError::TooManyRegions(held) => {
                let detail = format!("the store holds {held} regions, as many as it may");
                Self::new(Code::TooManyRegions, detail).retry_after_ms(60_000)
            }
            StoreError::Broken(cause) => Self::internal(&cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_every_member_and_says_when_to_come_again() {
        let problem = Problem::new(Code::Quarantined, "until 5").retry_after_ms(1);
        let body: Value = serde_json::from_str(&problem.to_json()).unwrap();
        assert_eq!(body["type"], "urn:kheya:problem:quarantined");
        assert_eq!(
            (&body["status"], &body["code"]),
            (&503.into(), &"quarantined".into())
        );
        assert_eq!(body["errors"], Value::Array(Vec::new()));
        let response = problem.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Code::ALL.len());
    }
}
