//! The recordings in `data/`: exactly what `kheya generate` makes, and they show what batching is
//! worth.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod command_line;

use std::{fs, path::Path};

use command_line::{Desk, run};
use serde_json::Value;

fn recording(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(name)
}

#[test]
fn the_recordings_are_what_generate_makes() {
    let desk = Desk::new();
    for (name, hours, requests, drivers, seed) in [
        ("evening-rush", "2", "2200", "500", "7"),
        ("plenty", "1", "1500", "900", "8"),
    ] {
        let out = desk.path(name);
        let order = [
            "--hours",
            hours,
            "--requests-per-hour",
            requests,
            "--drivers",
            drivers,
            "--seed",
            seed,
        ];
        run([&["generate", "--out", out.to_str().unwrap()], &order[..]].concat()).done();
        for file in ["requests.csv", "drivers.csv"] {
            let (kept, made) = (recording(name).join(file), out.join(file));
            let same = fs::read(&kept).unwrap() == fs::read(&made).unwrap();
            assert!(same, "{} is not what generate makes", kept.display());
        }
    }
}

fn replay(name: &str) -> Value {
    let path = |file: &str| recording(name).join(file).to_str().unwrap().to_owned();
    let (requests, drivers) = (path("requests.csv"), path("drivers.csv"));
    let flags = ["--policy", "all", "--format", "json"];
    run([
        &["replay", &requests, "--drivers-file", &drivers],
        &flags[..],
    ]
    .concat())
    .json()
}

fn figure(answer: &Value, policy: &str, name: &str) -> f64 {
    let mut runs = answer["runs"].as_array().unwrap().iter();
    runs.find(|run| run["policy"] == policy).unwrap()[name]
        .as_f64()
        .unwrap()
}

#[test]
fn in_the_rush_batch_serves_more_than_oldest_first() {
    let answer = replay("evening-rush");
    assert_eq!(answer["input"]["rows_used"], answer["input"]["rows_read"]);
    let served = |policy: &str| figure(&answer, policy, "match_rate");
    assert!(served("greedy") < 0.98, "no shortage: {}", served("greedy"));
    assert!(served("batch") > served("greedy") && served("batch") > served("greedy-now"));
    let cost = |policy: &str| figure(&answer, policy, "rider_cost_s");
    assert!(cost("batch") < cost("greedy") && cost("batch") < cost("greedy-now"));
    assert!(
        answer["gain_vs"]["greedy"]["rider_cost_pct"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    // greedy-edge is the close one, and stands beside every gain
    assert!(answer["gain_vs"]["greedy-edge"]["rider_cost_pct"].is_number());
    assert!(cost("batch") < 1.05 * cost("greedy-edge"));
}

#[test]
fn with_cars_in_plenty_everybody_is_served() {
    let answer = replay("plenty");
    for policy in ["batch", "greedy-edge", "greedy", "greedy-now"] {
        assert!(figure(&answer, policy, "match_rate") > 0.99, "{policy}");
    }
}
