//! The OpenAPI document against the routes, and what is answered where nothing is.

use std::collections::BTreeSet;

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::{Value, json};

use crate::support::Service;

fn document() -> Value {
    serde_json::to_value(kheya::http::document()).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((path.clone(), method.to_uppercase(), operation));
        }
    }
    operations
}

#[tokio::test]
async fn every_route_of_the_contract_is_documented_and_every_documented_one_is_routed() {
    let document = document();
    let documented: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| (path, method))
        .collect();
    let contract = [
        "POST /v1/solve",
        "GET /v1/regions",
        "GET /v1/regions/{region}",
        "PATCH /v1/regions/{region}/config",
        "POST /v1/regions/{region}/drivers",
        "GET /v1/regions/{region}/drivers",
        "GET /v1/regions/{region}/drivers/{driver}",
        "DELETE /v1/regions/{region}/drivers/{driver}",
        "POST /v1/regions/{region}/requests",
        "GET /v1/regions/{region}/requests",
        "GET /v1/regions/{region}/requests/{request}",
        "DELETE /v1/regions/{region}/requests/{request}",
        "POST /v1/regions/{region}/windows/{window_id}/solve",
        "GET /v1/regions/{region}/windows",
        "GET /v1/regions/{region}/windows/{window_seq}",
        "GET /v1/regions/{region}/events",
        "GET /v1/regions/{region}/events/stream",
        "GET /v1/regions/{region}/claims",
        "POST /v1/regions/{region}/claims/{driver}/confirm",
        "POST /v1/regions/{region}/claims/{driver}/release",
        "POST /v1/regions/{region}/claims/{driver}/complete",
        "POST /v1/regions/{region}/claims/{driver}/extend",
        "POST /v1/regions/{region}/reconcile",
        "GET /livez",
        "GET /readyz",
        "GET /metrics",
        "GET /openapi.json",
        "GET /docs",
    ];
    let contract = contract.map(|route| {
        let (method, path) = route.split_once(' ').unwrap();
        (path.to_owned(), method.to_owned())
    });
    assert_eq!(documented, contract.into_iter().collect());
    let service = Service::new();
    for (path, method, _) in operations(&document) {
        let path = path.replace(['{', '}'], "");
        let got = service.call(&method, &path, None).await;
        assert!(
            !got.text.contains("\"not_found\""),
            "{method} {path} is not routed"
        );
        assert_ne!(got.status, 405, "{method} {path} is not routed");
        // any method that is not documented is refused as a problem, with those that are
        let other = service.call("PUT", &path, None).await;
        other.is_problem(405, "method_not_allowed");
        assert!(
            other.headers[header::ALLOW]
                .to_str()
                .unwrap()
                .contains(&method),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_parameter_that_a_call_does_not_know_is_refused() {
    let document = document();
    let service = Service::new();
    let mut refused = 0;
    for (path, method, _) in operations(&document) {
        if !path.starts_with("/v1/") {
            continue;
        }
        let path = path.replace("{window_seq}", "1").replace(['{', '}'], "");
        let body = (method != "GET").then(|| json!({}));
        let path = format!("{path}?colour=red");
        let got = service.call(&method, &path, body).await;
        let problem = got.is_problem(422, "invalid");
        let told = problem["errors"].as_array().unwrap().iter();
        let told: Vec<&Value> = told.filter(|error| error["path"] == "colour").collect();
        assert_eq!(told.len(), 1, "{method} {path}: {problem}");
        assert_eq!(told[0]["code"], "unknown_parameter", "{method} {path}");
        refused += 1;
    }
    assert!(refused >= 23, "{refused}");
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let (true, Some(target)) = (name == "$ref", value.as_str()) {
                        found.insert(target.rsplit('/').next().unwrap().to_owned());
                    }
                    references(value, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in found {
        assert!(schemas.contains_key(&name), "{name} has no schema");
    }
}

/// The schemas of bodies name exactly the fields that are read: a body with every field of its
/// schema is not refused for any, and one more is.
#[tokio::test]
async fn the_schemas_of_bodies_are_what_is_read() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let service = Service::new();
    let names = |schema: &str| -> Vec<String> {
        let fields = schemas[schema]["properties"].as_object();
        fields
            .unwrap_or_else(|| panic!("{schema}"))
            .keys()
            .cloned()
            .collect()
    };
    let body = |schema: &str| -> Value {
        let fields = names(schema).into_iter().map(|name| (name, json!(true)));
        Value::Object(fields.chain([("surplus".to_owned(), json!(1))]).collect())
    };
    let cases = [
        ("/v1/solve", "SolveBody", None),
        ("/v1/solve", "SolveRequest", Some("requests")),
        ("/v1/solve", "SolveDriver", Some("drivers")),
        ("/v1/solve", "Edge", Some("edges")),
        ("/v1/regions/dhaka/drivers", "PingsBody", None),
        ("/v1/regions/dhaka/drivers", "Ping", Some("drivers")),
        ("/v1/regions/dhaka/requests", "RequestsBody", None),
        ("/v1/regions/dhaka/requests", "Request", Some("requests")),
        ("/v1/regions/dhaka/windows/w/solve", "OwnWindowBody", None),
        ("/v1/regions/dhaka/windows/w/solve", "Edge", Some("edges")),
        ("/v1/regions/dhaka/claims/d/confirm", "ConfirmBody", None),
        ("/v1/regions/dhaka/claims/d/release", "ReleaseBody", None),
        ("/v1/regions/dhaka/claims/d/complete", "CompleteBody", None),
        ("/v1/regions/dhaka/claims/d/extend", "ExtendBody", None),
        ("/v1/regions/dhaka/reconcile", "ReconcileBody", None),
    ];
    for (path, schema, list) in cases {
        let sent = match list {
            None => body(schema),
            Some(list) => json!({"requests": [], "drivers": [], list: [body(schema)]}),
        };
        let sent = match (path, list) {
            ("/v1/regions/dhaka/drivers" | "/v1/regions/dhaka/requests", Some(list)) => {
                json!({list: [body(schema)]})
            }
            _ => sent,
        };
        let got = service.post(path, sent).await;
        let unknown = got.text.matches("is not known here").count();
        assert_eq!(unknown, 1, "{path} {schema}: {}", got.text);
        assert!(
            got.text.contains("surplus"),
            "{path} {schema}: {}",
            got.text
        );
    }
}

#[tokio::test]
async fn the_page_and_the_document_need_nothing_from_elsewhere() {
    let service = Service::new();
    let page = service.get("/docs").await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("/v1/solve") && !page.text.contains("{{document}}"));
    for outside in ["src=\"http", "href=\"http", "@import", "url("] {
        assert!(!page.text.contains(outside), "{outside}");
    }
    let document = service.get("/openapi.json").await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let metrics = service.get("/metrics").await;
    assert!(
        metrics.text.contains("kheya_http_requests_total"),
        "{}",
        metrics.text
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_problem() {
    let service = Service::new();
    service
        .get("/v1/nothing")
        .await
        .is_problem(404, "not_found");
    service.get("/").await.is_problem(404, "not_found");
    service
        .get("/v1/regions/%FF")
        .await
        .is_problem(400, "malformed");
    let head = service.call("HEAD", "/livez", None).await;
    assert_eq!(
        (head.status, head.text.as_str()),
        (200.try_into().unwrap(), "")
    );
    let twice = Request::post("/v1/solve")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_ENCODING, "gzip, gzip");
    let twice = service.send(twice.body(Body::empty()).unwrap()).await;
    twice.is_problem(415, "unsupported_media_type");
    let got = service.get("/livez").await;
    assert_eq!(got.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(got.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
}
