//! `kheya replay` and `kheya generate`, run as a user runs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod command_line;

use std::{collections::BTreeSet, fs, path::Path, process::Stdio};

use chance::Chance;
use command_line::{Desk, Ran, everything_in, kheya, run};
use serde_json::Value;

const HEADER: &str =
    "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,trip_s";

/// A desk with a small recorded city.
fn small_city() -> (Desk, String, String) {
    let desk = Desk::new();
    let out = desk.path("city");
    let size = [
        "--hours",
        "0.5",
        "--requests-per-hour",
        "1600",
        "--drivers",
        "150",
        "--seed",
        "3",
    ];
    run([&["generate", "--out", out.to_str().unwrap()], &size[..]].concat()).done();
    let path = |name: &str| out.join(name).to_str().unwrap().to_owned();
    (desk, path("requests.csv"), path("drivers.csv"))
}

/// A desk with two requests in a file.
fn two_requests() -> (Desk, String) {
    let desk = Desk::new();
    let rows = "a,1767720600000,23.75,90.39,23.76,90.40,300\n\
        b,1767720601000,23.75,90.39,23.76,90.40,300\n";
    let file = desk.file("two.csv", format!("{HEADER}\n{rows}"));
    (desk, file)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn the_same_bytes_whatever_the_threads_and_the_order_of_the_rows() {
    let (desk, requests, drivers) = small_city();
    let text = fs::read_to_string(&requests).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    Chance::new(5).shuffle(&mut rows);
    let shuffled = desk.file("shuffled.csv", format!("{header}\n{}\n", rows.join("\n")));

    let fleets = [["--drivers-file", drivers.as_str()], ["--drivers", "120"]];
    for (n, fleet) in fleets.iter().enumerate() {
        let mut told = Vec::new();
        for (file, threads) in [(&requests, "1"), (&requests, "2"), (&shuffled, "2")] {
            let out = desk.path(&format!("out{n}-{}", told.len()));
            let args = [
                "replay",
                file,
                "--policy",
                "all",
                "--out",
                out.to_str().unwrap(),
            ];
            let mut command = kheya([&args, &fleet[..]].concat());
            command.env("RAYON_NUM_THREADS", threads);
            Ran::of(&command.output().unwrap()).done();
            let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
            told.push([read("assignments.csv"), read("windows.csv")]);
        }
        assert!(told[0][0].lines().count() > 1000, "the load is too light");
        assert!(told[0] == told[1], "the number of threads shows");
        assert!(told[0] == told[2], "the order of the rows shows");
    }
}

#[test]
fn another_seed_draws_another_fleet() {
    let (_desk, requests, _) = small_city();
    let cost = |seed: &str| {
        let args = [
            "replay",
            &requests,
            "--drivers",
            "60",
            "--seed",
            seed,
            "--format",
            "json",
        ];
        run(args).json()["runs"][0]["rider_cost_s"].clone()
    };
    assert_eq!(cost("1"), cost("1"));
    assert_ne!(cost("1"), cost("2"));
}

#[test]
fn the_answer_has_the_fields_of_the_contract() {
    let (desk, requests, drivers) = small_city();
    let out = desk.path("out");
    let answer = run([
        "replay",
        &requests,
        "--drivers-file",
        &drivers,
        "--policy",
        "all",
        "--format",
        "json",
        "--out",
        out.to_str().unwrap(),
    ])
    .json();
    assert_eq!(
        keys(&answer),
        ["input", "runs", "gain_vs", "wall_s", "trips_per_s"].into()
    );
    let mut input = keys(&answer["input"]);
    // not in the contract, and useful
    assert!(input.remove("notes"));
    let wanted = [
        "files",
        "rows_read",
        "rows_used",
        "rejected",
        "mapping",
        "time_resolution",
        "on_minute_share",
        "trip_time_source",
        "from_ms",
        "to_ms",
    ];
    assert_eq!(input, wanted.into());

    let runs = answer["runs"].as_array().unwrap();
    let policies: Vec<&str> = runs
        .iter()
        .map(|run| run["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["batch", "greedy-edge", "greedy", "greedy-now"]);
    for run in runs {
        let mut fields = keys(run);
        assert!(fields.remove("paid_km") && fields.remove("windows_deferring"));
        let wanted = [
            "policy",
            "window_ms",
            "drivers",
            "requests",
            "matched",
            "expired",
            "expired_with_candidates",
            "match_rate",
            "pickup_eta_s",
            "assign_delay_s",
            "wait_s",
            "rider_cost_s",
            "empty_km",
            "empty_km_share",
            "utilisation",
            "en_route_share",
            "windows",
            "solve_ms",
        ];
        assert_eq!(fields, wanted.into());
        for spread in ["pickup_eta_s", "assign_delay_s", "wait_s"] {
            assert_eq!(
                keys(&run[spread]),
                ["mean", "p50", "p90", "p95", "max"].into()
            );
        }
        assert_eq!(keys(&run["solve_ms"]), ["p50", "p99", "max"].into());
        let count = |name: &str| run[name].as_u64().unwrap();
        assert_eq!(count("matched") + count("expired"), count("requests"));
        assert_eq!(
            count("requests"),
            answer["input"]["rows_used"].as_u64().unwrap()
        );
    }
    let mut written: Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    written["wall_s"] = answer["wall_s"].clone();
    written["trips_per_s"] = answer["trips_per_s"].clone();
    assert_eq!(written, answer);
    let names: Vec<_> = everything_in(&out)
        .iter()
        .map(|p| p.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["assignments.csv", "run.json", "windows.csv"]);
}

#[test]
fn every_gain_names_its_baseline() {
    let (_desk, requests, drivers) = small_city();
    let files = ["replay", &requests, "--drivers-file", &drivers];
    let answer = run([&files[..], &["--policy", "all", "--format", "json"]].concat()).json();
    assert_eq!(
        keys(&answer["gain_vs"]),
        ["greedy", "greedy-edge", "greedy-now"].into()
    );
    for gain in answer["gain_vs"].as_object().unwrap().values() {
        let wanted = [
            "rider_cost_pct",
            "pickup_eta_mean_pct",
            "match_rate_pts",
            "empty_km_per_trip_pct",
        ];
        assert_eq!(keys(gain), wanted.into());
    }
}

#[test]
fn policies_are_run_by_name() {
    let (_desk, file) = two_requests();
    for (name, wanted) in [
        ("batch", &["batch"][..]),
        ("greedy", &["greedy"]),
        ("greedy-edge", &["greedy-edge"]),
        ("greedy-now", &["greedy-now"]),
        ("both", &["batch", "greedy"]),
    ] {
        let answer = run([
            "replay",
            &file,
            "--drivers",
            "2",
            "--policy",
            name,
            "--format",
            "json",
        ])
        .json();
        let runs = answer["runs"].as_array().unwrap().iter();
        let policies: Vec<&str> = runs.map(|run| run["policy"].as_str().unwrap()).collect();
        assert_eq!(policies, wanted);
    }
}

/// A replay of a file that must be refused: nothing is left in `--out`, made or found.
fn refused(desk: &Desk, args: &[&str], named: &[&str]) {
    let out = desk.path("out");
    let out = out.as_path();
    let call = [&["replay", "--out", out.to_str().unwrap()], args].concat();
    run(&call).refused(named);
    assert!(!out.exists(), "{call:?} left something");
    fs::create_dir(out).unwrap();
    fs::write(out.join("run.json"), "mine").unwrap();
    run(&call).refused(named);
    let kept = [out.join("run.json")];
    assert_eq!(everything_in(out), kept, "{call:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), "mine");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_the_reason() {
    let desk = Desk::new();
    let folder = desk.path("folder");
    fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let binary: Vec<u8> = (0..5000_u32).map(|n| (n * n % 253) as u8).collect();
    let dirty = format!("{HEADER}\na,1767720600000,99,190,1,1,1\nb,then,23.7,90.3,23.7,90.3,1\n");
    let dates = HEADER.replace("requested_at_ms", "requested_at");
    let either_way = format!("{dates}\na,01/02/2024 10:00,23.7,90.3,23.7,90.3,1\n");
    let files = [
        ("binary.csv", desk.file("binary.csv", binary), "binary"),
        ("empty.csv", desk.file("empty.csv", ""), "empty"),
        (
            "columns.csv",
            desk.file("columns.csv", "a,b,c\n1,2,3\n"),
            "pickup_lat",
        ),
        (
            "header.csv",
            desk.file("header.csv", format!("{HEADER}\n")),
            "no rows",
        ),
        ("dirty.csv", desk.file("dirty.csv", dirty), "1 out_of_range"),
        (
            "dates.csv",
            desk.file("dates.csv", either_way),
            "--date-order",
        ),
        (
            "missing.csv",
            desk.path("missing.csv").to_str().unwrap().to_owned(),
            "no such file",
        ),
        ("folder", folder.to_owned(), "directory"),
    ];
    for (name, file, why) in &files {
        refused(&desk, &[file, "--drivers", "2"], &[name, why]);
    }
    let no_record = desk.file("no-record.csv", format!("{HEADER}\n"));
    run(["replay", "--verify", &no_record]).refused(&["no-record.csv", "no record"]);
    let two = format!("{HEADER}\na,1767720600000,23.75,90.39,23.76,90.40,300\n");
    let good = desk.file("good.csv", two);
    refused(
        &desk,
        &[&good, &good, "--drivers", "2"],
        &["good.csv", "twice"],
    );
    // a good file beside a bad one does not make it good
    refused(
        &desk,
        &[&good, &files[0].1, "--drivers", "2"],
        &["binary.csv"],
    );
}

#[test]
fn a_fleet_that_cannot_be_used_is_refused_with_row_and_column() {
    let (desk, requests) = two_requests();
    for (text, named) in [
        ("", "empty"),
        ("driver_id,from_ms,lat\nd,1,2\n", "lng"),
        ("driver_id,from_ms,lat,lng\n", "no rows"),
        (
            "driver_id,from_ms,lat,lng\nd,soon,2,3\n",
            "row 2, column \"from_ms\"",
        ),
        (
            "driver_id,from_ms,lat,lng\nd,1,200,3\n",
            "row 2, column \"lat\"",
        ),
        (
            "driver_id,from_ms,lat,lng\nd,1,2,3\nd,1,2,3\n",
            "row 3, column \"driver_id\"",
        ),
        (
            "driver_id,from_ms,lat,lng,to_ms\nd,5,2,3,4\n",
            "row 2, column \"to_ms\"",
        ),
    ] {
        let fleet = desk.file("fleet.csv", text);
        refused(
            &desk,
            &[&requests, "--drivers-file", &fleet],
            &["fleet.csv", named],
        );
    }
    let missing = desk.path("missing.csv");
    let missing = missing.to_str().unwrap();
    refused(
        &desk,
        &[&requests, "--drivers-file", missing],
        &["missing.csv"],
    );
}

#[test]
fn a_call_that_makes_no_sense_is_refused_by_the_name_of_its_flag() {
    let (desk, file) = two_requests();
    let with = |more: &[&'static str]| [&["--drivers", "2"], more].concat();
    for (more, named) in [
        (with(&["--window", "0"]), "--window"),
        (with(&["--window", "0s"]), "--window"),
        (with(&["--window", "31s"]), "--window"),
        (with(&["--window", "3"]), "--window"),
        (with(&["--window", "-3s"]), "-3"),
        (
            with(&["--plan-ahead", "99h"]),
            "--plan-ahead 99h: outside its limits, the nearest is 10min",
        ),
        (
            with(&["--demand-ahead", "90min"]),
            "--demand-ahead 90min: outside its limits, the nearest is 10min",
        ),
        (with(&["--window", "0.5ms"]), "--window"),
        (vec!["--drivers", "0"], "--drivers"),
        (vec!["--drivers", "-1"], "-1"),
        (vec!["--drivers", "many"], "--drivers"),
        (with(&["--drivers-file", "fleet.csv"]), "--drivers-file"),
        (vec![], "--drivers-file"),
        (with(&["--sample", "0"]), "--sample"),
        (with(&["--sample", "2"]), "--sample"),
        (with(&["--sample", "NaN"]), "--sample"),
        (with(&["--map", "nonsense"]), "--map nonsense"),
        (with(&["--map", "colour=x"]), "colour"),
        (with(&["--map", "pickup_lat=nowhere"]), "nowhere"),
        (with(&["--set", "nonsense"]), "--set nonsense"),
        (with(&["--set", "colour=1"]), "colour"),
        (with(&["--set", "max_wait_ms=1"]), "max_wait_ms"),
        (with(&["--set", "max_wait_ms=soon"]), "max_wait_ms"),
        (with(&["--set", "max_wait_ms=true"]), "max_wait_ms"),
        (with(&["--set", "idle_weight=10"]), "idle_weight"),
        (with(&["--tz", "Mars/Base"]), "Mars/Base"),
        (
            with(&["--from", "2026-01-07", "--to", "2026-01-06"]),
            "--from",
        ),
        (with(&["--from", "tomorrow"]), "--from tomorrow"),
        (with(&["--policy", "best"]), "--policy"),
        (with(&["--date-order", "xyz"]), "--date-order"),
        (with(&["--zones", "nowhere.csv"]), "nowhere.csv"),
        (with(&["--colour", "blue"]), "--colour"),
    ] {
        refused(&desk, &[&[file.as_str()], &more[..]].concat(), &[named]);
    }
    refused(&desk, &["--drivers", "2"], &["FILE"]);
}

#[test]
fn an_out_that_is_no_directory_is_refused_before_the_work() {
    let (desk, file) = two_requests();
    let taken = desk.file("taken", "mine");
    let below = format!("{taken}/below");
    for out in [&taken, &below] {
        run(["replay", &file, "--drivers", "2", "--out", out]).refused(&["--out", "taken"]);
        let order = [
            "generate",
            "--hours",
            "1",
            "--requests-per-hour",
            "9",
            "--drivers",
            "2",
        ];
        run([&order[..], &["--out", out]].concat()).refused(&["--out", "taken"]);
    }
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");

    let locked = desk.path("locked");
    fs::create_dir(&locked).unwrap();
    let mut rights = fs::metadata(&locked).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&locked, rights).unwrap();
    // root writes everywhere
    if fs::write(locked.join("probe"), "").is_err() {
        for out in [locked.clone(), locked.join("below")] {
            let out = out.to_str().unwrap();
            run(["replay", &file, "--drivers", "2", "--out", out]).refused(&["--out", "locked"]);
        }
    }
}

#[test]
fn a_file_that_cannot_be_put_in_its_place_leaves_the_others_as_they_were() {
    let (desk, file) = two_requests();
    for name in ["run.json", "assignments.csv", "windows.csv"] {
        let out = desk.path("out");
        fs::create_dir_all(out.join(name)).unwrap();
        let ran = run([
            "replay",
            &file,
            "--drivers",
            "2",
            "--out",
            out.to_str().unwrap(),
        ]);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains(name),
            "{ran:?}"
        );
        assert_eq!(everything_in(&out), [out.join(name)]);
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn a_reader_that_hangs_up_is_no_failure() {
    let (_desk, file) = two_requests();
    for args in [
        vec!["replay", file.as_str(), "--drivers", "2", "--policy", "all"],
        vec![
            "replay",
            file.as_str(),
            "--drivers",
            "2",
            "--format",
            "json",
        ],
        vec!["replay", "--help"],
    ] {
        let mut child = kheya(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn help_is_an_answer_and_a_missing_command_a_mistake() {
    for command in [vec![], vec!["solve"], vec!["replay"], vec!["generate"]] {
        let ran = run(command.iter().chain(&["--help"])).done();
        assert!(ran.stdout.contains("Usage: kheya"), "{command:?}");
    }
    let version = run(["--version"]).done().stdout;
    assert!(version.starts_with("kheya "));
    for call in [vec![], vec!["dance"], vec!["solve"], vec!["generate"]] {
        let ran = run(&call);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{call:?}");
        assert!(ran.stderr.contains("Usage"), "{call:?}");
    }
}

fn generate(out: &Path, seed: &str) -> [Vec<u8>; 2] {
    let size = [
        "--hours",
        "0.25",
        "--requests-per-hour",
        "400",
        "--drivers",
        "30",
    ];
    let out_text = out.to_str().unwrap();
    run([&["generate", "--seed", seed, "--out", out_text], &size[..]].concat()).done();
    ["requests.csv", "drivers.csv"].map(|name| fs::read(out.join(name)).unwrap())
}

#[test]
fn a_seed_generates_one_city_and_another_seed_another() {
    let desk = Desk::new();
    let first = generate(&desk.path("first"), "5");
    assert!(first[0].len() > 1000);
    assert!(generate(&desk.path("second"), "5") == first);
    let other = generate(&desk.path("other"), "6");
    assert!(other[0] != first[0] && other[1] != first[1]);
    // over what was there
    assert!(generate(&desk.path("other"), "5") == first);
    assert_eq!(everything_in(&desk.path("other")).len(), 2);
}

#[test]
fn an_order_for_a_city_that_cannot_be_is_refused() {
    let desk = Desk::new();
    let out = desk.path("city");
    for (hours, requests, drivers, named) in [
        ("0", "9", "2", "--hours"),
        ("nan", "9", "2", "--hours"),
        ("-1", "9", "2", "-1"),
        ("337", "9", "2", "--hours"),
        ("1", "0", "2", "--requests-per-hour"),
        ("1", "9", "0", "--drivers"),
        ("300", "1000000", "2", "requests"),
    ] {
        run([
            "generate",
            "--hours",
            hours,
            "--requests-per-hour",
            requests,
            "--drivers",
            drivers,
            "--out",
            out.to_str().unwrap(),
        ])
        .refused(&[named]);
        assert!(!out.exists());
    }
}
