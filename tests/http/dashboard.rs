//! The dashboard names only metrics that exist.

use std::collections::BTreeSet;

use kheya::telemetry::{CATALOG, Kind};
use serde_json::Value;

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "expr" || name == "query" => found.push(text.into()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn every_metric_of_the_dashboard_exists_and_the_important_ones_are_shown() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert!(found.len() > 20, "the dashboard is empty");
    let mut known = BTreeSet::new();
    for metric in CATALOG {
        match metric.kind {
            Kind::Counter | Kind::Gauge => drop(known.insert(metric.name.to_owned())),
            Kind::Time | Kind::Age | Kind::Gain => {
                known.extend(
                    ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)),
                );
            }
        }
    }
    let mut shown = BTreeSet::new();
    for expression in &found {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("kheya_")) {
            assert!(
                known.contains(word),
                "{word} of {expression:?} is no metric"
            );
            shown.insert(word.to_owned());
        }
    }
    for metric in CATALOG {
        let is_shown = shown.iter().any(|word| word.starts_with(metric.name));
        assert!(is_shown, "{} is on no panel", metric.name);
    }
}
