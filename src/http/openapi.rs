//! The OpenAPI document, made from the routes' own descriptions; and a page that shows it offline.

use std::sync::OnceLock;

use serde_json::Value;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder, Responses,
        path::Operation,
        schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

use crate::config::RegionConfig;

use super::{
    model::problem::ProblemBody,
    problem::PROBLEM_JSON,
    routes::{claims, drivers, events, health, reconcile, regions, requests, solve, windows},
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Kheya",
        description = "Batched assignment of drivers to riders: one optimal decision a window, claims with fences, an ordered event stream. Times are Unix milliseconds (`*_ms`), travel times and costs are seconds (`*_s`).",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT"),
    ),
    paths(
        solve::solve,
        regions::list_regions,
        regions::get_region,
        regions::patch_config,
        drivers::post_pings,
        drivers::nearby,
        drivers::get_driver,
        drivers::delete_driver,
        requests::post_requests,
        requests::list_requests,
        requests::get_request,
        requests::cancel_request,
        windows::solve_own,
        windows::list_windows,
        windows::get_window,
        events::list_events,
        events::stream_events,
        claims::list_claims,
        claims::confirm,
        claims::release,
        claims::complete,
        claims::extend,
        reconcile::reconcile,
        health::livez,
        health::readyz,
        health::metrics,
        health::openapi_json,
        health::docs,
    ),
    components(schemas(ProblemBody)),
    modifiers(&Problems, &Tokens, &Texts, &Settings),
)]
struct Api;

/// The document of the API.
pub fn document() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// The document as JSON, of a node with tokens or one without access control.
pub(crate) fn json(guarded: bool) -> &'static str {
    static GUARDED: OnceLock<String> = OnceLock::new();
    static OPEN: OnceLock<String> = OnceLock::new();
    let text = if guarded { &GUARDED } else { &OPEN };
    text.get_or_init(|| {
        let mut document = document();
        if !guarded {
            document.security = None;
        }
        // strings and numbers: it always has a JSON form
        document.to_json().unwrap_or_default()
    })
}

/// The document as a page that needs nothing else.
pub(crate) fn page() -> String {
    // "</" would end the script element early
    let document = json(true).replace("</", "<\\/");
    include_str!("docs.html").replace("{{document}}", &document)
}

/// Adds the problems that a route can answer with, by what it has: they follow from its shape, so
/// that no route can forget one.
struct Problems;

impl Modify for Problems {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut openapi.paths.paths {
            let operations = [
                (&mut item.get, "get"),
                (&mut item.post, "post"),
                (&mut item.patch, "patch"),
                (&mut item.delete, "delete"),
            ];
            for (operation, method) in operations {
                if let Some(operation) = operation {
                    add_problems(operation, path, method);
                }
            }
        }
    }
}

fn add_problems(operation: &mut Operation, path: &str, method: &str) {
    let ends = |end: &str| path.ends_with(end);
    let of_region = path.contains("{region}");
    let guarded = !matches!(path, "/livez" | "/readyz");
    let conflicts = (of_region && method == "delete")
        || ends("/reconcile")
        || (method == "post"
            && (ends("/requests") || path.contains("/claims/") || ends("/solve"))
            && of_region);
    let has_body = operation.request_body.is_some();
    let api = path.starts_with("/v1/");
    let cases = [
        (api, "400", "`malformed`"),
        (guarded, "401", "`unauthenticated`"),
        (guarded, "403", "`forbidden`"),
        (
            of_region,
            "404",
            "`unknown_region`, `unknown_driver`, `unknown_request`, `unknown_window`",
        ),
        (has_body, "408", "`body_timeout`"),
        (
            conflicts,
            "409",
            "`held`, `id_conflict`, `lease_expired`, `already_confirmed`, `request_closed`, `not_confirmed`, `fence_stale`, `not_held`, `window_conflict`, `window_in_progress`, `generation_changed`",
        ),
        (path.contains("/events"), "410", "`cursor_gone`"),
        (method == "patch", "412", "`version_mismatch`"),
        (has_body, "413", "`too_large`"),
        (has_body, "415", "`unsupported_media_type`"),
        (api, "422", "`invalid`: every wrong field is listed"),
        (guarded, "429", "`quota`"),
        (true, "500", "`internal`"),
        (
            api || path == "/readyz",
            "503",
            "`region_full`, `quarantined`, `paused`, `store_unavailable`, `shutting_down`, `not_ready`, `too_many_regions`",
        ),
        (guarded, "504", "`outcome_unknown`: repeat the call"),
    ];
    for (occurs, status, codes) in cases {
        if occurs {
            let retry = matches!(status, "429" | "503" | "504");
            let problem = RefOr::T(problem(codes, retry));
            add(&mut operation.responses, status, problem);
        }
    }
}

fn add(responses: &mut Responses, status: &str, response: RefOr<Response>) {
    responses.responses.entry(status.into()).or_insert(response);
}

fn problem(codes: &str, retry: bool) -> Response {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    let mut response = ResponseBuilder::new()
        .description(codes)
        .content(PROBLEM_JSON, content);
    if retry {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
        let mut header = Header::new(seconds);
        header.description = Some("Whole seconds".into());
        response = response.header("Retry-After", header);
    }
    response.build()
}

/// Says what the texts of paths, queries and headers look like.
struct Texts;

impl Modify for Texts {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        const ID: &str = "^[ -.0-~]{1,128}$";
        const CURSOR: &str = "^[0-9]{1,15}-[0-9]{1,15}$";
        const CURSOR_OR_LATEST: &str = "^(latest|[0-9]{1,15}-[0-9]{1,15})$";
        for (path, item) in &mut openapi.paths.paths {
            let operations = [
                &mut item.get,
                &mut item.post,
                &mut item.patch,
                &mut item.delete,
            ];
            for operation in operations.into_iter().flatten() {
                for parameter in operation.parameters.iter_mut().flatten() {
                    let pattern = match parameter.name.as_str() {
                        "region" => "^[a-z0-9][a-z0-9_-]{0,63}$",
                        "Last-Event-ID" => CURSOR,
                        "If-Match" => "^([*]|\"[0-9]{1,15}\")$",
                        "state" if path.ends_with("/claims") => "^(offered|on_trip)$",
                        "state" => "^(pending|assigned|confirmed|cancelled|expired|released)$",
                        "after" if path.contains("/events") => CURSOR_OR_LATEST,
                        "after" if path.ends_with("/windows") => continue,
                        "driver" | "request" | "window_id" | "after" => ID,
                        _ => continue,
                    };
                    let text = ObjectBuilder::new().schema_type(Type::String);
                    parameter.schema = Some(text.pattern(Some(pattern)).build().into());
                }
            }
        }
    }
}

/// Adds the settings of a region, from the defaults of the configuration itself.
struct Settings;

impl Modify for Settings {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let defaults = RegionConfig::default().settings();
        let mut config = ObjectBuilder::new().description(Some("A region's settings."));
        let mut patch = ObjectBuilder::new()
            .description(Some("Settings to change; `null` restores a default."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        for (name, default) in &defaults {
            config = config
                .property(name, setting(default, false))
                .required(name);
            patch = patch.property(name, setting(default, true));
        }
        let components = openapi.components.get_or_insert_default();
        components
            .schemas
            .insert("RegionConfig".into(), config.build().into());
        components
            .schemas
            .insert("ConfigPatch".into(), patch.build().into());
    }
}

fn setting(default: &Value, nullable: bool) -> Schema {
    let kind = match default {
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        _ => {
            let number = ObjectBuilder::new().schema_type(Type::Number);
            let list = ArrayBuilder::new()
                .items(number)
                .default(Some(default.clone()));
            return list.build().into();
        }
    };
    let kind = if nullable {
        SchemaType::from_iter([kind, Type::Null])
    } else {
        kind.into()
    };
    let setting = ObjectBuilder::new().schema_type(kind);
    setting.default(Some(default.clone())).build().into()
}

/// Declares the bearer tokens.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("token", scheme);
        let none: [&str; 0] = [];
        openapi.security = Some(vec![SecurityRequirement::new("token", none)]);
    }
}
