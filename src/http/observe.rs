//! Every call leaves a metric and, where it failed, a line in the log; every answer has the headers
//! that keep it out of caches.

use std::time::Instant;

use axum::{
    RequestExt as _,
    extract::{MatchedPath, RawPathParams, Request},
    http::{HeaderValue, Method, header},
    middleware::Next,
    response::Response,
};
use tracing::Instrument as _;

use super::problem::Code;
use crate::telemetry;

/// Watches one call.
pub(crate) async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let params = request.extract_parts::<RawPathParams>().await.ok();
    let param = |name: &str| {
        let found = params.iter().flatten().find(|(param, _)| *param == name);
        found.map(|(_, value)| value.to_owned())
    };
    let path = route.as_ref().map_or("none", MatchedPath::as_str);
    let span = tracing::info_span!(
        "http",
        method,
        route = path,
        region = param("region"),
        window = param("window_id").or_else(|| param("window_seq")),
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status(), started.elapsed());
    let code = response
        .extensions()
        .get::<Code>()
        .map(|code| code.as_str());
    span.in_scope(|| {
        let took_ms = took.as_secs_f64() * 1e3;
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), code, took_ms, "answered");
        } else {
            tracing::debug!(status = status.as_u16(), code, took_ms, "answered");
        }
    });
    telemetry::http_request(path, method, status.as_u16(), took);
    let headers = response.headers_mut();
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The few methods that are routed; any other is told as one.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
