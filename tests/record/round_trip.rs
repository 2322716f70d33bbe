//! What is recorded is what is read back.

use std::{path::Path, sync::Arc};

use kheya::{
    domain::{
        CostMs, DriverId, DurationMs, Fence, Finite, Generation, Nonce, Place, RegionId, RequestId,
        RiderId, UnixMs, VehicleClass, WindowId, WindowSeq,
    },
    protocol::{
        Answer, BatchAnswer, BeginOwnWindow, CancelRefusal, CancelRequest, Cancelled, ClaimAnswer,
        ClaimKey, ClaimOwnBatch, ClaimRefusal, ClaimState, Command, Complete, Configure,
        ConfigureRefusal, Confirm, EntryCode, Extend, Fingerprint, Intake, IntakeAnswer,
        IntakePlace, IntakeRefusal, OwnBegun, OwnPair, PairLoss, PairOutcome, Patch, Ping,
        PingAnswer, Pings, Reconcile, ReconcileRefusal, RegionRules, Rejected, Release,
        ReleaseReason, RemoveDriver, RemoveDriverRefusal, RequestDraft, RequestState, Sweep, Swept,
        Taken, TripOutcome, TripTold,
    },
    record::{Entry, RecordOptions, Recorder},
    store::ManualClock,
};
use tempfile::tempdir;

use super::city::{START, entries, options};

pub(crate) fn recorder(directory: &Path) -> (Recorder, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let options: RecordOptions = options(directory, clock.clone());
    (Recorder::open(options).unwrap(), clock)
}

pub(crate) fn region() -> RegionId {
    RegionId::new("dhaka").unwrap()
}

pub(crate) fn driver(id: &str) -> DriverId {
    DriverId::new(id).unwrap()
}

pub(crate) fn request(id: &str) -> RequestId {
    RequestId::new(id).unwrap()
}

pub(crate) fn place(north: f64) -> Place {
    // digits that a careless reader rounds
    Place::new(23.750_000_000_000_004 + north / 3.0, 90.389_999_999_999_99).unwrap()
}

pub(crate) fn at(ms: i64) -> UnixMs {
    START + DurationMs::new(ms)
}

fn draft(id: &str) -> RequestDraft {
    let mut draft = RequestDraft::at(request(id), place(0.01));
    draft.rider_id = Some(RiderId::new("rider \"1\"").unwrap());
    draft.dropoff = Some(place(0.1));
    draft.vehicle_classes = vec![VehicleClass::new("moto").unwrap()];
    draft.requested_at_ms = Some(at(-5));
    draft.max_wait_ms = Some(DurationMs::new(77_000));
    draft.unmatched_cost = Some(CostMs::new(-1));
    draft.max_pickup_eta = Some(DurationMs::new(1));
    draft.exclude_driver_ids = vec![driver("d9")];
    draft
}

fn every_command() -> Vec<(Command, Answer)> {
    [of_requests(), of_claims(), of_regions()].concat()
}

fn of_requests() -> Vec<(Command, Answer)> {
    vec![
        (
            Command::RemoveDriver(RemoveDriver {
                driver_id: driver("d1"),
            }),
            Answer::RemoveDriver(Err(RemoveDriverRefusal::Held)),
        ),
        (
            Command::Intake(Intake {
                requests: vec![draft("r1"), draft("r2")],
            }),
            Answer::Intake(Ok(IntakeAnswer {
                requests: vec![Taken {
                    id: request("r1"),
                    state: RequestState::Pending,
                    place: IntakePlace {
                        window_seq: WindowSeq::new(3),
                        closes_at_ms: at(3_000),
                    },
                    replayed: true,
                }],
                rejected: vec![Rejected {
                    index: 1,
                    id: request("r2"),
                    code: EntryCode::RegionFull,
                }],
            })),
        ),
        (
            Command::Intake(Intake { requests: vec![] }),
            Answer::Intake(Err(IntakeRefusal::Paused)),
        ),
        (
            Command::Cancel(CancelRequest {
                request_id: request("r1"),
            }),
            Answer::Cancel(Ok(Cancelled {
                request_id: request("r1"),
                at_ms: at(3),
                freed: Some((driver("d1"), Fence::new(5))),
            })),
        ),
        (
            Command::Cancel(CancelRequest {
                request_id: request("r1"),
            }),
            Answer::Cancel(Err(CancelRefusal::RequestClosed)),
        ),
    ]
}

fn of_claims() -> Vec<(Command, Answer)> {
    let claim = ClaimKey {
        driver_id: driver("d1"),
        request_id: request("r1"),
        fence: Fence::new((1 << 53) - 1),
    };
    let done = |state| ClaimAnswer {
        claim: claim.clone(),
        state,
        now_ms: at(9),
        lease_until_ms: (state == ClaimState::Offered).then(|| at(15_009)),
    };
    vec![
        (
            Command::Confirm(Confirm {
                claim: claim.clone(),
            }),
            Answer::Confirm(Ok(done(ClaimState::OnTrip))),
        ),
        (
            Command::Confirm(Confirm {
                claim: claim.clone(),
            }),
            Answer::Confirm(Err(ClaimRefusal::FenceStale)),
        ),
        (
            Command::Release(Release {
                claim: claim.clone(),
                reason: ReleaseReason::Undeliverable,
            }),
            Answer::Release(Ok(done(ClaimState::Available))),
        ),
        (
            Command::Complete(Complete {
                claim: claim.clone(),
                outcome: TripOutcome::NoShow,
            }),
            Answer::Complete(Err(ClaimRefusal::NotConfirmed)),
        ),
        (
            Command::Extend(Extend {
                claim: claim.clone(),
                lease_ms: DurationMs::new(20_000),
            }),
            Answer::Extend(Ok(done(ClaimState::Offered))),
        ),
    ]
}

fn of_regions() -> Vec<(Command, Answer)> {
    let window_id = WindowId::new("w 1").unwrap();
    vec![
        (
            Command::BeginOwn(BeginOwnWindow {
                window_id: window_id.clone(),
                fingerprint: Fingerprint::of(b"a body"),
                runner: Nonce::new(11),
                work_ms: DurationMs::new(500),
            }),
            Answer::BeginOwn(Ok(OwnBegun::Run { claimed: vec![] })),
        ),
        (
            Command::ClaimOwn(ClaimOwnBatch {
                window_id,
                runner: Nonce::new(11),
                batch_no: 2,
                lease_ms: None,
                pairs: vec![OwnPair {
                    request: Arc::new(draft("r3")),
                    driver_id: driver("d2"),
                    eta: DurationMs::new(61_000),
                    cost: CostMs::new(-61_000),
                }],
            }),
            Answer::ClaimOwn(Ok(Arc::new(BatchAnswer {
                outcomes: vec![PairOutcome::Lost(PairLoss::AlreadyPending)],
            }))),
        ),
        (
            Command::Configure(Configure {
                rules: RegionRules::default(),
                document: "{\"a\": 0.1}".into(),
                expected: None,
                actor: "ops-1".into(),
                changes: "{}".into(),
            }),
            Answer::Configure(Err(ConfigureRefusal::TooLarge)),
        ),
        (
            Command::Reconcile(Reconcile {
                generation: Generation::new(4),
                on_trip: vec![TripTold {
                    driver_id: driver("d1"),
                    request_id: request("r1"),
                }],
                pending: vec![draft("r4")],
                done: true,
            }),
            Answer::Reconcile(Err(ReconcileRefusal::TooLarge)),
        ),
    ]
}

#[test]
fn every_kind_of_command_is_read_back_as_it_was() {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    let commands = every_command();
    for (n, (command, answer)) in (0..).zip(&commands) {
        recorder.command(&region(), at(n), command, answer);
    }
    // a step of the protocol itself is no input
    recorder.command(
        &region(),
        at(99),
        &Command::Sweep(Sweep::default()),
        &Answer::Sweep(Swept::default()),
    );
    recorder.close();

    let read = entries(dir.path());
    assert_eq!(read.len(), commands.len() + 2);
    let Entry::Header(header) = &read[0] else {
        panic!("{:?}", read[0]);
    };
    assert_eq!((&*header.format, header.segment), ("kheya-log/1", 1));
    assert_eq!((header.node.as_str(), header.started_ms), ("node:1", START));
    for ((n, entry), (command, answer)) in (0..).zip(&read[1..]).zip(&commands) {
        let Entry::Command(entry) = entry else {
            panic!("{entry:?}");
        };
        assert_eq!((&entry.region, entry.at_ms), (&region(), at(n)));
        assert_eq!((&entry.command, &entry.answer), (command, answer));
    }
    assert!(matches!(read.last(), Some(Entry::End(_))));
}

#[test]
fn pings_are_brought_down_to_the_newest_of_each_driver() {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    let ping = |id: &str, ms: i64, speed: Patch<Finite>| {
        let mut ping = Ping::at(driver(id), place(ms as f64 / 1e5), at(ms));
        ping.speed_kmh = speed;
        ping
    };
    let set = |speed: f64| Patch::Set(Finite::or_zero(speed));
    let answer = PingAnswer {
        accepted: 2,
        ..PingAnswer::default()
    };
    let first = Pings {
        pings: vec![ping("d2", 10, set(31.4)), ping("d1", 5, Patch::Clear)],
    };
    recorder.command(
        &region(),
        at(12),
        &Command::Ping(first),
        &Answer::Ping(answer),
    );
    let answer = PingAnswer {
        accepted: 1,
        moved: 1,
        stale: 1,
        rejected: vec![Rejected {
            index: 2,
            id: driver("d3"),
            code: EntryCode::AtMsInFuture,
        }],
    };
    let second = Pings {
        pings: vec![
            ping("d2", 20, Patch::Keep),
            ping("d1", 4, set(1.0)),
            ping("d3", 99_999, Patch::Keep),
        ],
    };
    recorder.command(
        &region(),
        at(22),
        &Command::Ping(second),
        &Answer::Ping(answer),
    );
    recorder.close();

    let read = entries(dir.path());
    let Entry::Supply(supply) = &read[1] else {
        panic!("{read:?}");
    };
    assert_eq!((supply.from_ms, supply.to_ms), (at(12), at(22)));
    assert_eq!(
        (
            supply.accepted,
            supply.stale,
            supply.rejected[&EntryCode::AtMsInFuture]
        ),
        (3, 1, 1)
    );
    assert_eq!(
        supply.pings,
        [ping("d1", 5, Patch::Clear), ping("d2", 20, set(31.4))]
    );
}
