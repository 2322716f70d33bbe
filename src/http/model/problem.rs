//! The schema of a problem.

use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong (RFC 9457). `code` is for programs; every wrong field is in `errors`.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// `urn:kheya:problem:` and the code.
    pub r#type: String,
    /// What goes wrong under this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time.
    pub detail: String,
    /// The code.
    pub code: String,
    /// Every wrong field.
    pub errors: Vec<ProblemField>,
    /// With `cursor_gone`: the oldest usable cursor.
    #[schema(nullable = false)]
    pub oldest: Option<String>,
    /// With `generation_changed`: the present generation.
    #[schema(nullable = false)]
    pub generation: Option<u64>,
    /// With `version_mismatch`: the present version.
    #[schema(nullable = false)]
    pub config_version: Option<u64>,
}

/// A wrong field.
#[derive(Serialize, ToSchema)]
pub struct ProblemField {
    /// Where it stands, such as `requests[3].pickup.lat`.
    pub path: String,
    /// What kind of error it is.
    pub code: String,
    /// The value given, unless it is long.
    pub value: serde_json::Value,
    /// What would be right.
    pub detail: String,
}
