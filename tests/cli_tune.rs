//! `kheya tune`, run as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod command_line;

use std::{collections::BTreeSet, fs};

use command_line::{Desk, Ran, everything_in, kheya, run};
use serde_json::Value;

/// A desk with two recorded hours of a small city.
fn small_city() -> (Desk, String, String) {
    let desk = Desk::new();
    let out = desk.path("city");
    let size = [
        "--hours",
        "2",
        "--requests-per-hour",
        "900",
        "--drivers",
        "120",
    ];
    run([&["generate", "--out", out.to_str().unwrap()], &size[..]].concat()).done();
    let path = |name: &str| out.join(name).to_str().unwrap().to_owned();
    (desk, path("requests.csv"), path("drivers.csv"))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let fields = value.as_object().unwrap();
    fields.keys().map(String::as_str).collect()
}

#[test]
fn the_answer_has_the_fields_of_the_contract() {
    let (_desk, requests, drivers) = small_city();
    let answer = run([
        "tune",
        &requests,
        "--drivers-file",
        &drivers,
        "--windows",
        "2s,3s,5s",
        "--seeds",
        "2",
        "--max-pickup-eta",
        "600,900",
        "--age-weight",
        "0,0.05",
        "--format",
        "json",
    ])
    .json();
    for field in ["sweep", "recommended", "by_hour"] {
        assert!(keys(&answer).contains(field), "{field}");
    }
    assert!(keys(&answer["recommended"]).is_superset(&["window_ms", "reason"].into()));
    let sweep = answer["sweep"].as_array().unwrap();
    // three windows, two caps, two weights; two rules beside them at two caps
    assert_eq!(sweep.len(), 12 + 2 + 2);
    for row in sweep {
        let wanted = [
            "window_ms",
            "max_pickup_eta_s",
            "age_weight",
            "drivers",
            "policy",
            "rider_cost_s",
            "diff_s",
            "interval_s",
            "verdict",
        ];
        assert!(keys(row).is_superset(&wanted.into()), "{row}");
        let verdicts = [
            "better",
            "worse",
            "equivalent",
            "undecided",
            "not_enough_data",
        ];
        assert!(verdicts.contains(&row["verdict"].as_str().unwrap()));
        let interval = row["interval_s"].as_array().unwrap();
        let side = |at: usize| interval[at].as_f64().unwrap();
        let diff = row["diff_s"].as_f64().unwrap();
        assert!(side(0) <= diff && diff <= side(1), "{row}");
    }
    let references: Vec<&Value> = sweep
        .iter()
        .filter(|row| row["reference"] == true)
        .collect();
    assert_eq!(references.len(), 1);
    // the region's own window and cap
    assert_eq!(references[0]["window_ms"], 3000);
    assert_eq!(references[0]["max_pickup_eta_s"], 900.0);
    for row in sweep {
        let diff = row["diff_s"].as_f64().unwrap();
        let of = |row: &Value| row["rider_cost_s"].as_f64().unwrap();
        assert!((of(row) - of(references[0]) - diff).abs() < 2e-4, "{row}");
    }
    let hours = answer["by_hour"].as_array().unwrap();
    assert!(!hours.is_empty());
    assert!(
        hours
            .iter()
            .all(|hour| hour["sweep"].as_array().unwrap().len() == 12)
    );
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains("leaves out cancellations and declines"),
        "{notes}"
    );
}

#[test]
fn the_same_answer_whatever_the_threads() {
    let (desk, requests, _) = small_city();
    let mut told = Vec::new();
    for threads in ["1", "2", "5"] {
        let out = desk.path(threads);
        let mut command = kheya([
            "tune",
            &requests,
            "--drivers",
            "60,90",
            "--windows",
            "1s,4s",
            "--seeds",
            "3",
            "--patience",
            "wait=4m,eta=20m",
            "--acceptance",
            "base=0.95,eta=15m",
            "--policy",
            "all",
            "--format",
            "json",
            "--out",
            out.to_str().unwrap(),
        ]);
        command.env("RAYON_NUM_THREADS", threads);
        let mut answer = Ran::of(&command.output().unwrap()).json();
        answer["wall_s"] = Value::Null;
        let blocks = fs::read_to_string(out.join("blocks.csv")).unwrap();
        assert!(blocks.lines().count() > 500, "the load is too light");
        assert!(answer["sweep"][0]["gave_up"].as_u64() > Some(0));
        assert!(answer["sweep"][0]["declined"].as_u64() > Some(0));
        assert_eq!(answer["method"]["patience"], "wait=240s,eta=1200s");
        // half an hour is short: that its course is taken as given is all there is to note
        assert_eq!(answer["notes"].as_array().unwrap().len(), 1);
        told.push((answer, blocks));
        assert_eq!(everything_in(&out).len(), 2);
    }
    assert!(told[0] == told[1] && told[0] == told[2]);
}

#[test]
fn the_recommended_settings_are_a_configuration_that_serve_takes() {
    let (desk, requests, _) = small_city();
    let file = desk.path("tuned.toml");
    let file = file.to_str().unwrap();
    for (region, table) in [(None, "region_defaults"), (Some("dhaka"), "dhaka")] {
        let mut args = vec![
            "tune",
            &requests,
            "--drivers",
            "900",
            "--windows",
            "500ms,20s",
            "--seeds",
            "2",
            "--max-pickup-eta",
            "700",
            "--set",
            "max_wait_ms=240000",
            "--reference",
            "20s",
            "--config-out",
            file,
        ];
        args.extend(region.iter().flat_map(|region| ["--region", region]));
        let told = run(&args).done().stdout;
        assert!(
            told.contains("recommended: 0.5 s: it saves riders"),
            "{told}"
        );
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains("# 0.5 s: it saves riders"), "{text}");
        let printed = run(["serve", "--config", file, "--print-config"])
            .done()
            .stdout;
        let effective: toml::Table = printed.parse().unwrap();
        let settings = match region {
            None => &effective[table],
            Some(_) => &effective["regions"][table],
        };
        assert_eq!(settings["window_ms"].as_integer(), Some(500));
        assert_eq!(settings["max_pickup_eta_s"].as_float(), Some(700.0));
        assert_eq!(settings["max_wait_ms"].as_integer(), Some(240_000));
    }
}

#[test]
fn a_call_that_makes_no_sense_is_refused_by_the_name_of_its_flag() {
    let desk = Desk::new();
    let header = "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,trip_s";
    let row = "a,1767720600000,23.75,90.39,23.76,90.40,300";
    let file = desk.file("one.csv", format!("{header}\n{row}\n"));
    let out = desk.path("out");
    for (more, named) in [
        (&["--windows", "31s"][..], "--windows"),
        (&["--windows", "100ms"], "--windows"),
        (&["--windows", "3"], "--windows"),
        (
            &["--plan-ahead", "0s,99h"],
            "--plan-ahead 99h: outside its limits, the nearest is 10min",
        ),
        (
            &["--demand-ahead", "90min"],
            "--demand-ahead 90min: outside its limits, the nearest is 10min",
        ),
        (&["--windows", ""], "--windows"),
        (&["--windows", "3s,3s"], "--windows"),
        (&["--max-pickup-eta", "1"], "--max-pickup-eta 1"),
        (&["--max-pickup-eta", "far"], "--max-pickup-eta"),
        (&["--max-pickup-eta", "NaN"], "--max-pickup-eta"),
        (&["--max-pickup-eta", "300,300"], "--max-pickup-eta"),
        (&["--age-weight=-1"], "--age-weight -1"),
        (&["--age-weight", "11"], "--age-weight 11"),
        (&["--reference", "9s"], "--reference"),
        (&["--seeds", "0"], "--seeds"),
        (&["--seeds", "101"], "--seeds"),
        (&["--drivers", "0"], "--drivers"),
        (&["--drivers", "2,x"], "--drivers"),
        (&["--drivers", "2,2"], "--drivers"),
        (&["--set", "window_ms=2000"], "--windows"),
        (
            &["--set", "max_pickup_eta_s=60", "--max-pickup-eta", "90"],
            "--max-pickup-eta",
        ),
        (&["--set", "colour=1"], "colour"),
        (
            &["--set", "idle_weight=1.4", "--max-pickup-eta", "600"],
            "--max-pickup-eta 600",
        ),
        (&["--patience", "wait=never"], "--patience"),
        (&["--patience", "soon"], "--patience"),
        (&["--acceptance", "2"], "--acceptance"),
        (&["--tz", "Mars/Base"], "Mars/Base"),
        (&["--sample", "2"], "--sample"),
        (&["--policy", "best"], "--policy"),
        (&["--region", "No Region"], "--region"),
        (&["--config-out", "/nowhere/at/all.toml"], "--config-out"),
        (&["--report-colour", "blue"], "--report-colour"),
    ] {
        let fleet: &[&str] = if more[0] == "--drivers" {
            &[]
        } else {
            &["--drivers", "2"]
        };
        let call = [
            &["tune", &file, "--out", out.to_str().unwrap()],
            fleet,
            more,
        ]
        .concat();
        run(&call).refused(&[named]);
        assert!(!out.exists(), "{call:?} left something");
    }
    run(["tune", &file]).refused(&["--drivers"]);
    run(["tune", "--drivers", "2"]).refused(&["FILE"]);
    let missing = desk.path("missing.csv");
    run(["tune", missing.to_str().unwrap(), "--drivers", "2"]).refused(&["missing.csv"]);
    let many = [
        "--windows",
        "1s,2s,3s,4s,5s,6s,7s,8s,9s,10s",
        "--seeds",
        "100",
    ];
    let caps: Vec<String> = (10..60).map(|s| s.to_string()).collect();
    let caps = caps.join(",");
    let call = [
        &["tune", &file, "--drivers", "2", "--max-pickup-eta", &caps],
        &many[..],
    ]
    .concat();
    run(&call).refused(&["too many"]);
}

#[test]
fn too_little_demand_is_told_and_nothing_is_changed() {
    let desk = Desk::new();
    let header = "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,trip_s";
    let row = "a,1767720600000,23.75,90.39,23.76,90.40,300";
    let file = desk.file("one.csv", format!("{header}\n{row}\n"));
    let answer = run(["tune", &file, "--drivers", "2", "--format", "json"]).json();
    assert_eq!(answer["recommended"]["window_ms"], 3000);
    let reason = answer["recommended"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Not enough data"), "{reason}");
    let told = run(["tune", &file, "--drivers", "2"]).done().stdout;
    assert!(told.contains("not enough data"), "{told}");
}
