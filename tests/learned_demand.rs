//! Demand learned by `kheya replay --learn`, and what reads it, run as a user runs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod command_line;

use std::path::PathBuf;

use command_line::{Desk, kheya, run};
use serde_json::Value;

const RUSH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/data/evening-rush/requests.csv"
);
const AHEAD: [&str; 4] = ["--plan-ahead", "20s", "--demand-ahead", "60s"];

/// A desk with the model of two evenings of a generated city, and the file of a third.
fn two_evenings_and_a_third() -> (Desk, String, String) {
    let desk = Desk::new();
    let out = desk.path("city");
    let out = out.to_str().unwrap();
    let order = "--hours 66 --requests-per-hour 300 --drivers 60 --seed 5";
    let order: Vec<&str> = order.split(' ').collect();
    run([&["generate", "--out", out], &order[..]].concat()).done();
    let requests = format!("{out}/requests.csv");
    let learned = desk.path("learned");
    let learned = learned.to_str().unwrap();
    let to = ["--to", "2026-01-08T00:00:00", "--learn", learned];
    run([&["replay", &requests], &to[..]].concat()).done();
    (desk, requests, format!("{learned}/demand.json"))
}

/// Replays the third evening.
fn third_evening(requests: &str, more: &[&str]) -> Vec<String> {
    let call = [
        "replay",
        requests,
        "--from",
        "2026-01-08T17:00:00",
        "--drivers",
        "70",
        "--format",
        "json",
    ];
    let call = call.iter().chain(more);
    call.map(|part| (*part).to_owned()).collect()
}

fn without_times(mut answer: Value) -> Value {
    for name in ["wall_s", "trips_per_s"] {
        answer.as_object_mut().unwrap().remove(name);
    }
    for run in answer["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("solve_ms");
    }
    answer
}

#[test]
fn learning_needs_no_fleet_and_says_what_it_learned() {
    let desk = Desk::new();
    let directory = desk.path("new/learned");
    let directory = directory.to_str().unwrap();
    let learned = run(["replay", RUSH, "--learn", directory, "--format", "json"]).json();
    assert_eq!(learned["requests"], 4_400);
    let hours = learned["watched_h"].as_f64().unwrap();
    assert!((hours - 2.0).abs() < 0.01, "{learned}");
    let file = PathBuf::from(learned["file"].as_str().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    let model: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(model["requests"], 4_400);
    assert_eq!(model["tz"], "UTC");
    assert!(!text.contains("r0000"), "a model names nobody");
    let human = run(["replay", RUSH, "--learn", directory]).done().stdout;
    assert!(human.contains("learned from 4400 requests"), "{human}");

    // what only a replay can give is not silently left out
    let page = desk.path("page.html");
    let page = page.to_str().unwrap();
    for (flag, more) in [
        ("--report", &["--report", page][..]),
        ("--out", &["--out", directory]),
        ("--bound", &["--bound"]),
    ] {
        let call = ["replay", RUSH, "--learn", directory];
        run([&call[..], more].concat()).refused(&[flag, "--drivers"]);
    }
    // with a fleet it replays, too
    let both = ["replay", RUSH, "--learn", directory, "--drivers", "500"];
    assert!(run(both).done().stdout.contains("rider cost"));
}

#[test]
fn a_model_that_cannot_be_read_is_refused_before_the_work() {
    let desk = Desk::new();
    let folder = desk.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let missing = desk.path("missing.json");
    let files = [
        (missing.to_str().unwrap().to_owned(), "No such file"),
        (folder.to_str().unwrap().to_owned(), "directory"),
        (desk.file("garbage.json", "{]"), "line 1"),
        (desk.file("binary.json", [0xff, 0xfe, 0, 1]), "UTF-8"),
        (
            desk.file("other.json", "{\"format\":\"x\"}"),
            "missing field",
        ),
    ];
    for (file, reason) in &files {
        for command in ["replay", "tune"] {
            let call = [command, RUSH, "--drivers", "50", "--demand-model", file];
            run(call).refused(&["--demand-model", file, reason]);
        }
    }
}

#[test]
fn a_model_is_used_only_where_demand_is_looked_ahead_to() {
    let (_desk, requests, model) = two_evenings_and_a_third();
    let replayed = |more: &[&str]| without_times(run(third_evening(&requests, more)).json());
    let with_model = ["--demand-model", model.as_str()];
    assert_eq!(replayed(&[]), replayed(&with_model));

    let late = replayed(&AHEAD);
    let learned = replayed(&[&AHEAD[..], &with_model].concat());
    assert_eq!(late["runs"][0]["ahead"]["learned_demand"], false);
    let ahead = &learned["runs"][0]["ahead"];
    assert_eq!(ahead["learned_demand"], true);
    assert_eq!(ahead["learned_from_this"], false);
    assert_ne!(
        late["runs"][0]["rider_cost_s"],
        learned["runs"][0]["rider_cost_s"]
    );
    // everybody is accounted for: those who are expected are no requests
    for run in [&late["runs"][0], &learned["runs"][0]] {
        assert_eq!(run["requests"], late["input"]["rows_used"]);
    }

    let call = third_evening(&requests, &[&AHEAD[..], &with_model].concat());
    let threads = |n: &str| {
        let output = kheya(&call).env("RAYON_NUM_THREADS", n).output().unwrap();
        without_times(serde_json::from_slice(&output.stdout).unwrap())
    };
    assert_eq!(threads("1"), threads("3"));
    assert_eq!(threads("1"), learned);
}

#[test]
fn a_model_that_knew_the_answer_is_said_to() {
    let desk = Desk::new();
    let directory = desk.path("learned");
    let directory = directory.to_str().unwrap();
    run(["replay", RUSH, "--learn", directory]).done();
    let model = format!("{directory}/demand.json");
    let own = [RUSH, "--drivers", "500", "--demand-model", &model];
    let replayed = run([&["replay"], &own[..], &AHEAD].concat()).done().stdout;
    assert!(replayed.contains("from this very demand"), "{replayed}");
    let swept = ["--windows", "3s", "--seeds", "1", "--sample", "0.2"];
    let tuned = run([&["tune"], &own[..], &AHEAD, &swept].concat()).done();
    let told = tuned
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        told.contains("from the very time that is replayed"),
        "{told}"
    );
    let off = ["--demand-ahead", "0s"];
    let tuned = run([&["tune"], &own[..], &swept, &off].concat()).done();
    assert!(!tuned.stdout.contains("learned"), "{}", tuned.stdout);
}

#[test]
fn tune_tries_both_and_tells_them_apart() {
    let (desk, requests, model) = two_evenings_and_a_third();
    let page = desk.path("page.html");
    let out = desk.path("out");
    let mut call = third_evening(&requests, &[]);
    call[0] = "tune".into();
    let more = [
        "--to",
        "2026-01-08T18:00:00",
        "--windows",
        "3s",
        "--seeds",
        "2",
        "--policy",
        "batch",
        "--demand-ahead",
        "0s,60s",
        "--demand-model",
        &model,
        "--report",
        page.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    call.extend(more.iter().map(|part| (*part).to_owned()));
    let tuned = run(&call).json();
    let rows = tuned["sweep"].as_array().unwrap();
    let tried = |row: &Value| {
        (
            row["demand_ahead_ms"].as_i64().unwrap(),
            row["learned_demand"] == true,
        )
    };
    let tried: Vec<_> = rows.iter().map(tried).collect();
    assert_eq!(tried, [(0, false), (60_000, false), (60_000, true)]);
    assert_ne!(rows[1]["rider_cost_s"], rows[2]["rider_cost_s"]);
    assert!(std::fs::read_to_string(page).unwrap().contains("learned"));
    let blocks = std::fs::read_to_string(out.join("blocks.csv")).unwrap();
    assert!(blocks.lines().next().unwrap().contains("learned_demand"));
    assert!(blocks.lines().any(|line| line.contains(",60000,true,")));
}
