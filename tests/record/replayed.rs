//! A record as demand, and the commands that take one.

use std::{path::Path, process::Command, sync::Arc};

use kheya::{
    domain::{
        CostMs, DriverId, DurationMs, Fence, NodeId, Nonce, Place, RegionId, RequestId, WindowId,
        WindowSeq,
    },
    protocol::{
        Answer, BatchAnswer, ClaimAnswer, ClaimKey, ClaimOwnBatch, ClaimState, Command as Call,
        Complete, Confirm, Intake, IntakeAnswer, IntakePlace, OwnPair, PairOutcome, Ping,
        PingAnswer, Pings, RequestDraft, RequestState, Taken, TripOutcome,
    },
    record::{Recorder, read_recorded_demand},
    replay::input::{DropoffRule, InputError, ReadOptions, Reason, RecordedRun, read_demand},
    store::ManualClock,
};
use serde_json::Value;
use tempfile::tempdir;

use super::city::{START, recorded};

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
    let (code, _, stderr) = kheya(&["replay", text(&csv), paths[0]]);
    assert_eq!(code, 2);
    assert!(stderr.contains("one kind of input"), "{stderr}");
}

fn apply(recorder: &Recorder, ms: i64, command: Call, answer: Answer) {
    let region = RegionId::new("dhaka").unwrap();
    recorder.command(&region, START + DurationMs::new(ms), &command, &answer);
}

/// Two nodes serve one region: one takes the request and the pings, the other the claim.
#[test]
fn what_two_nodes_took_in_side_by_side_is_put_together() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let node = |name: &str| {
        let mut options = super::city::options(dir.path(), clock.clone());
        options.node = NodeId::new(name).unwrap();
        Recorder::open(options).unwrap()
    };
    let (one, two) = (node("one"), node("two"));
    let place = |lat: f64| Place::new(lat, 90.0).unwrap();
    let (request, driver) = (RequestId::new("r").unwrap(), DriverId::new("d").unwrap());
    let ping = |ms: i64, lat: f64| {
        let ping = Ping::at(driver.clone(), place(lat), START + DurationMs::new(ms));
        let answer = PingAnswer {
            accepted: 1,
            ..PingAnswer::default()
        };
        apply(
            &one,
            ms,
            Call::Ping(Pings { pings: vec![ping] }),
            Answer::Ping(answer),
        );
        one.flush();
    };
    let draft = RequestDraft::at(request.clone(), place(23.0));
    let answer = IntakeAnswer {
        requests: vec![Taken {
            id: request.clone(),
            state: RequestState::Pending,
            place: IntakePlace {
                window_seq: WindowSeq::new(1),
                closes_at_ms: START,
            },
            replayed: false,
        }],
        rejected: vec![],
    };
    ping(0, 22.9);
    apply(
        &one,
        10,
        Call::Intake(Intake {
            requests: vec![draft.clone()],
        }),
        Answer::Intake(Ok(answer)),
    );
    one.flush();
    let pair = OwnPair {
        request: Arc::new(draft),
        driver_id: driver.clone(),
        eta: DurationMs::new(60_000),
        cost: CostMs::new(60_000),
    };
    let claimed = PairOutcome::Claimed {
        fence: Fence::new(1),
        lease_until_ms: START,
        lease_ms: DurationMs::new(1),
    };
    let claim = ClaimOwnBatch {
        window_id: WindowId::new("w").unwrap(),
        runner: Nonce::new(1),
        batch_no: 0,
        lease_ms: None,
        pairs: vec![pair],
    };
    let answer = Arc::new(BatchAnswer {
        outcomes: vec![claimed],
    });
    apply(
        &two,
        20,
        Call::ClaimOwn(claim),
        Answer::ClaimOwn(Ok(answer)),
    );
    let claim = ClaimKey {
        driver_id: driver.clone(),
        request_id: request,
        fence: Fence::new(1),
    };
    let answer = |ms: i64, state| ClaimAnswer {
        claim: claim.clone(),
        state,
        now_ms: START + DurationMs::new(ms),
        lease_until_ms: None,
    };
    apply(
        &two,
        1_000,
        Call::Confirm(Confirm {
            claim: claim.clone(),
        }),
        Answer::Confirm(Ok(answer(1_000, ClaimState::OnTrip))),
    );
    ping(361_000, 23.5);
    let outcome = TripOutcome::Done;
    apply(
        &two,
        361_500,
        Call::Complete(Complete {
            claim: claim.clone(),
            outcome,
        }),
        Answer::Complete(Ok(answer(361_500, ClaimState::Available))),
    );
    // already at the next rider
    ping(500_000, 23.9);
    one.close();
    two.close();

    let recorded = read_recorded_demand(&[dir.path().to_owned()], &|_, _| ()).unwrap();
    let region = &recorded.regions[0];
    assert_eq!(
        (
            recorded.read.runs,
            region.requests.len(),
            region.drivers.len()
        ),
        (2, 1, 1)
    );
    let trip = &region.requests[0];
    assert_eq!(trip.requested_at, START + DurationMs::new(10));
    assert_eq!(trip.dropoff, Some(place(23.5)));
    assert_eq!(trip.trip_s, Some(300.5));
    assert_eq!(
        (region.drivers[0].from, region.drivers[0].place),
        (START, place(22.9))
    );
    assert_eq!(region.drivers[0].to, None);
}
