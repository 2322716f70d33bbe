//! A record as demand, and the commands that take one.

use std::{path::Path, process::Command};

use kheya::{
    record::read_recorded_demand,
    replay::input::{DropoffRule, InputError, ReadOptions, Reason, RecordedRun, read_demand},
};
use serde_json::Value;
use tempfile::tempdir;

use super::city::recorded;

fn kheya(arguments: &[&str]) -> (i32, Value, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_kheya"))
        .args(arguments)
        .output()
        .unwrap();
    let json = serde_json::from_slice(&done.stdout).unwrap_or(Value::Null);
    (
        done.status.code().unwrap(),
        json,
        String::from_utf8(done.stderr).unwrap(),
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_record_is_replayed_with_another_window_and_keeps_its_requests() {
    let dir = tempdir().unwrap();
    let city = recorded(dir.path(), 40).await;
    let asked = city.asked.len() as u64;

    let recorded = read_recorded_demand(&[dir.path().to_owned()], &|_, _| ()).unwrap();
    let region = &recorded.regions[0];
    assert_eq!(region.requests.len() as u64, asked);
    assert_eq!(region.from_windows, 0);
    assert!(
        region
            .requests
            .iter()
            .all(|request| city.asked.contains(&request.id))
    );
    assert_eq!(region.drivers.len(), 150);
    let left = region
        .drivers
        .iter()
        .filter(|driver| driver.to.is_some())
        .count();
    assert!(left < 150);
    let timed = region
        .requests
        .iter()
        .filter(|r| r.trip_s.is_some())
        .count();
    assert!(timed > 20, "{timed} trips have a time");
    // half of the requests name a drop-off; a driven trip tells the other half's
    let known = region
        .requests
        .iter()
        .filter(|r| r.dropoff.is_some())
        .count() as u64;
    assert!(known > asked * 6 / 10, "{known} of {asked}");

    let files = [dir.path().to_owned()];
    let demand = read_demand(&files, &ReadOptions::default(), &|_, _| ()).unwrap();
    assert_eq!(demand.report.rows_read, asked);
    assert_eq!(demand.report.rows_used, known);
    assert_eq!(demand.report.rejected[&Reason::NoDropoff], asked - known);
    let sample = ReadOptions {
        dropoff: DropoffRule::Sample,
        ..ReadOptions::default()
    };
    let sampled = read_demand(&files, &sample, &|_, _| ()).unwrap();
    assert_eq!(sampled.report.rows_used, asked);

    for window in ["1s", "5s"] {
        let arguments = [
            "replay",
            text(dir.path()),
            "--window",
            window,
            "--policy",
            "both",
            "--format",
            "json",
        ];
        let (code, json, stderr) = kheya(&arguments);
        assert_eq!(code, 0, "{stderr}");
        for run in json["runs"].as_array().unwrap() {
            let count = |name: &str| run[name].as_u64().unwrap();
            assert_eq!(count("requests"), known);
            assert_eq!(count("matched") + count("expired"), known);
            assert_eq!(count("drivers"), 150);
            assert!(count("matched") > known / 2);
        }
    }
    // without --window: that of the record
    let (code, json, _) = kheya(&[
        "replay",
        text(dir.path()),
        "--format",
        "json",
        "--drivers",
        "9",
    ]);
    assert_eq!(
        (code, json["runs"][0]["window_ms"].as_u64()),
        (0, Some(3_000))
    );
    assert_eq!(json["runs"][0]["drivers"].as_u64(), Some(9));
}

#[tokio::test]
async fn verify_tells_by_its_exit_code() {
    let dir = tempdir().unwrap();
    let city = recorded(dir.path(), 9).await;
    let run = city.recorder.run_directory();
    let (code, json, stderr) = kheya(&["replay", "--verify", text(run), "--format", "json"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(json["verified"], true);
    assert_eq!(
        json["decisions"]["identical"].as_u64().unwrap()
            + json["decisions"]["checked"].as_u64().unwrap(),
        9
    );

    let empty = tempdir().unwrap();
    let (code, _, stderr) = kheya(&["replay", "--verify", text(empty.path())]);
    assert_eq!(code, 2);
    assert!(stderr.contains("holds no record"), "{stderr}");

    let segment = super::city::segments(run).remove(0);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[40] ^= 1;
    bytes.extend_from_slice(&bytes.clone());
    std::fs::write(&segment, bytes).unwrap();
    let (code, _, stderr) = kheya(&["replay", "--verify", text(run)]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("segment-00000001.jsonl.zst is damaged"),
        "{stderr}"
    );

    let (code, _, stderr) = kheya(&["replay", "--verify", text(run), "--window", "5s"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--window"), "{stderr}");
}

#[tokio::test]
async fn one_region_is_replayed_and_other_inputs_bring_no_cars() {
    let dir = tempdir().unwrap();
    let mut city = recorded(&dir.path().join("a"), 6).await;
    let clock = city.clock.clone();
    let mut options = super::city::options(&dir.path().join("b"), clock.clone());
    options.flush_every = std::time::Duration::from_millis(5);
    city = super::city::City::in_region("sylhet", options, clock, 4, 40, 3).await;
    for _ in 0..5 {
        city.window().await;
    }
    city.recorder.close();
    let files = [dir.path().join("a"), dir.path().join("b")];
    let error = RecordedRun::read(&files, None, &|_, _| ()).unwrap_err();
    let InputError::Option {
        option: "--region",
        detail,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(
        detail.contains("dhaka (") && detail.contains("sylhet (15 requests)"),
        "{detail}"
    );
    let paths = [text(&files[0]), text(&files[1])];
    let (code, json, stderr) = kheya(&[
        "replay",
        paths[0],
        paths[1],
        "--region",
        "sylhet",
        "--dropoff",
        "sample",
        "--format",
        "json",
    ]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(json["runs"][0]["requests"], 15);
    let (code, _, stderr) = kheya(&["replay", paths[0], paths[1], "--region", "pabna"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("no such region"), "{stderr}");

    let csv = dir.path().join("demand.csv");
    std::fs::write(&csv, "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\nr,1700000000000,1,2,1.01,2\n").unwrap();
    let (code, _, stderr) = kheya(&["replay", text(&csv)]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--drivers"), "{stderr}");
    let absent = dir.path().join("absent");
    let (code, _, stderr) = kheya(&["replay", text(&absent)]);
    assert_eq!(code, 2);
    assert!(stderr.contains("no such file"), "{stderr}");
    let (code, _, stderr) = kheya(&["replay", text(&csv), paths[0]]);
    assert_eq!(code, 2);
    assert!(stderr.contains("one kind of input"), "{stderr}");
}
