//! Which path leads where.

use std::{any::Any, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, patch, post},
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    access::guard,
    observe::observe,
    problem::{Code, Problem},
    routes::{claims, drivers, events, health, reconcile, regions, requests, solve, windows},
    state::AppState,
};

/// Longest time for a call, its body included. The store's own deadline ends it far sooner.
const SHORT: Duration = Duration::from_secs(30);
/// Longest time for a long poll: 30 s, and the reading.
const POLL: Duration = Duration::from_secs(45);
/// Longest time for a solve: its body, its place in the line, 30 s of budget, and the rest.
const SOLVE: Duration = Duration::from_secs(90);

/// The routes of the API.
pub fn router(app: AppState) -> Router {
    let short = Router::new()
        .route("/v1/regions", get(regions::list_regions))
        .route("/v1/regions/{region}", get(regions::get_region))
        .route("/v1/regions/{region}/config", patch(regions::patch_config))
        .route(
            "/v1/regions/{region}/drivers",
            get(drivers::nearby).post(drivers::post_pings),
        )
        .route(
            "/v1/regions/{region}/drivers/{driver}",
            get(drivers::get_driver).delete(drivers::delete_driver),
        )
        .route(
            "/v1/regions/{region}/requests",
            get(requests::list_requests).post(requests::post_requests),
        )
        .route(
            "/v1/regions/{region}/requests/{request}",
            get(requests::get_request).delete(requests::cancel_request),
        )
        .route("/v1/regions/{region}/windows", get(windows::list_windows))
        .route(
            "/v1/regions/{region}/windows/{window_seq}",
            get(windows::get_window),
        )
        // only the head of a stream is timed
        .route(
            "/v1/regions/{region}/events/stream",
            get(events::stream_events),
        )
        .route("/v1/regions/{region}/claims", get(claims::list_claims))
        .route(
            "/v1/regions/{region}/claims/{driver}/confirm",
            post(claims::confirm),
        )
        .route(
            "/v1/regions/{region}/claims/{driver}/release",
            post(claims::release),
        )
        .route(
            "/v1/regions/{region}/claims/{driver}/complete",
            post(claims::complete),
        )
        .route(
            "/v1/regions/{region}/claims/{driver}/extend",
            post(claims::extend),
        )
        .route("/v1/regions/{region}/reconcile", post(reconcile::reconcile))
        .merge(documents())
        .route_layer(from_fn_with_state(SHORT, timed));
    let polls = Router::new()
        .route("/v1/regions/{region}/events", get(events::list_events))
        .route_layer(from_fn_with_state(POLL, timed));
    let solves = Router::new()
        .route("/v1/solve", post(solve::solve))
        .route(
            "/v1/regions/{region}/windows/{window_id}/solve",
            post(windows::solve_own),
        )
        .route_layer(from_fn_with_state(SOLVE, timed));
    let guarded = short
        .merge(polls)
        .merge(solves)
        .route_layer(from_fn_with_state(app.clone(), guard));
    finish(guarded.merge(probes()), app)
}

/// The routes of the admin listener: what watches a node, without tokens.
pub fn admin_router(app: AppState) -> Router {
    finish(documents().merge(probes()), app)
}

fn probes() -> Router<AppState> {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
}

fn documents() -> Router<AppState> {
    Router::new()
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(health::openapi_json))
        .route("/docs", get(health::docs))
}

fn finish(routes: Router<AppState>, app: AppState) -> Router {
    routes
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(observe))
        .with_state(app)
}

async fn nothing_here() -> Problem {
    Problem::new(Code::NotFound, "see /docs for what there is")
}

async fn other_method() -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        "see Allow for the methods of this path",
    )
}

async fn timed(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let answer = tokio::time::timeout(limit, next.run(request)).await;
    answer.unwrap_or_else(|_| {
        let detail = format!("no answer within {} s: repeat the call", limit.as_secs());
        Problem::new(Code::OutcomeUnknown, detail).into_response()
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands a panic over by value"
)]
fn panicked(cause: Box<dyn Any + Send + 'static>) -> Response {
    let cause = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a panic");
    Problem::internal(&cause).into_response()
}
