//! Health, metrics and documentation.

use axum::{
    Extension,
    extract::State,
    http::header,
    response::{Html, IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{
    lifecycle::Phase,
    openapi,
    problem::{Code, Problem},
    state::AppState,
    tokens::Caller,
};

/// The state of a node.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
    /// The node.
    node: String,
}

/// The process runs.
#[utoipa::path(
    get, path = "/livez", tag = "health", security(()),
    responses((status = 200, description = "It runs", body = Health)),
)]
pub(crate) async fn livez(State(app): State<AppState>) -> axum::Json<Health> {
    healthy(&app)
}

/// The node takes work and reaches its store.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "It is ready", body = Health)),
)]
pub(crate) async fn readyz(State(app): State<AppState>) -> Result<axum::Json<Health>, Problem> {
    match app.lifecycle().phase() {
        Phase::Ready => {}
        Phase::Starting => return Err(Problem::new(Code::NotReady, "the node is starting")),
        _ => {
            return Err(Problem::new(
                Code::ShuttingDown,
                "the node is about to stop",
            ));
        }
    }
    app.store().regions().await?;
    Ok(healthy(&app))
}

fn healthy(app: &AppState) -> axum::Json<Health> {
    axum::Json(Health {
        status: "ok",
        node: app.config().node_id.to_string(),
    })
}

/// Metrics, as Prometheus reads them.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain; version=0.0.4")),
)]
pub(crate) async fn metrics(
    State(app): State<AppState>,
    caller: Option<Extension<Caller>>,
) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    let mut text = app.telemetry().render();
    if let Some(Extension(caller)) = caller {
        // a caller of some regions sees those, and what has no region
        let seen = text
            .lines()
            .filter(|line| region_of(line).is_none_or(|region| caller.sees(region)));
        text = seen.flat_map(|line| [line, "\n"]).collect();
    }
    (content_type, text).into_response()
}

/// The region a line of metrics is about.
fn region_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("region=\"")?;
    rest.split_once('"').map(|(region, _)| region)
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "health",
    responses((status = 200, description = "The OpenAPI document", body = Object)),
)]
pub(crate) async fn openapi_json(State(app): State<AppState>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (content_type, openapi::json(app.tokens().is_some())).into_response()
}

/// This document as a page.
#[utoipa::path(
    get, path = "/docs", tag = "health",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")),
)]
pub(crate) async fn docs() -> Html<String> {
    Html(openapi::page())
}
