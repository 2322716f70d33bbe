//! Two nodes serve one region: one takes the request and the pings, the other the claim.

use std::{path::Path, sync::Arc};

use kheya::{
    domain::{
        CostMs, DriverId, DurationMs, Fence, NodeId, Nonce, Place, RegionId, RequestId, UnixMs,
        WindowId, WindowSeq,
    },
    protocol::{
        Answer, BatchAnswer, ClaimAnswer, ClaimKey, ClaimOwnBatch, ClaimState, Command, Complete,
        Confirm, Intake, IntakeAnswer, IntakePlace, OwnPair, PairOutcome, Ping, PingAnswer, Pings,
        RequestDraft, RequestState, Taken, TripOutcome,
    },
    record::{Recorder, read_recorded_demand},
    store::ManualClock,
};
use tempfile::tempdir;

use super::city::{START, options};

struct Node(Recorder);

fn at(ms: i64) -> UnixMs {
    START + DurationMs::new(ms)
}

fn place(lat: f64) -> Place {
    Place::new(lat, 90.0).unwrap()
}

fn draft() -> RequestDraft {
    RequestDraft::at(RequestId::new("r").unwrap(), place(23.0))
}

fn claim() -> ClaimKey {
    ClaimKey {
        driver_id: DriverId::new("d").unwrap(),
        request_id: RequestId::new("r").unwrap(),
        fence: Fence::new(1),
    }
}

fn answer(ms: i64, state: ClaimState) -> ClaimAnswer {
    ClaimAnswer {
        claim: claim(),
        state,
        now_ms: at(ms),
        lease_until_ms: None,
    }
}

impl Node {
    fn begin(directory: &Path, name: &str) -> Self {
        let mut options = options(directory, Arc::new(ManualClock::at(START)));
        options.node = NodeId::new(name).unwrap();
        Self(Recorder::open(options).unwrap())
    }

    fn told(&self, ms: i64, command: &Command, answer: &Answer) {
        let region = RegionId::new("dhaka").unwrap();
        self.0.command(&region, at(ms), command, answer);
        self.0.flush();
    }

    fn ping(&self, ms: i64, lat: f64) {
        let ping = Ping::at(claim().driver_id, place(lat), at(ms));
        let answer = PingAnswer {
            accepted: 1,
            ..PingAnswer::default()
        };
        self.told(
            ms,
            &Command::Ping(Pings { pings: vec![ping] }),
            &Answer::Ping(answer),
        );
    }

    fn intake(&self, ms: i64) {
        let taken = Taken {
            id: claim().request_id,
            state: RequestState::Pending,
            place: IntakePlace {
                window_seq: WindowSeq::new(1),
                closes_at_ms: START,
            },
            replayed: false,
        };
        let answer = IntakeAnswer {
            requests: vec![taken],
            rejected: vec![],
        };
        let intake = Intake {
            requests: vec![draft()],
        };
        self.told(ms, &Command::Intake(intake), &Answer::Intake(Ok(answer)));
    }

    fn claim(&self, ms: i64, eta: DurationMs) {
        let pair = OwnPair {
            request: Arc::new(draft()),
            driver_id: claim().driver_id,
            eta,
            cost: CostMs::new(eta.get()),
        };
        let batch = ClaimOwnBatch {
            window_id: WindowId::new("w").unwrap(),
            runner: Nonce::new(1),
            batch_no: 0,
            lease_ms: None,
            pairs: vec![pair],
        };
        let claimed = PairOutcome::Claimed {
            fence: claim().fence,
            lease_until_ms: START,
            lease_ms: DurationMs::new(1),
        };
        let answer = Arc::new(BatchAnswer {
            outcomes: vec![claimed],
        });
        self.told(ms, &Command::ClaimOwn(batch), &Answer::ClaimOwn(Ok(answer)));
    }

    fn confirm(&self, ms: i64) {
        let answer = answer(ms, ClaimState::OnTrip);
        self.told(
            ms,
            &Command::Confirm(Confirm { claim: claim() }),
            &Answer::Confirm(Ok(answer)),
        );
    }

    fn complete(&self, ms: i64) {
        let complete = Complete {
            claim: claim(),
            outcome: TripOutcome::Done,
        };
        let answer = answer(ms, ClaimState::Available);
        self.told(
            ms,
            &Command::Complete(complete),
            &Answer::Complete(Ok(answer)),
        );
    }
}

#[test]
fn what_two_nodes_took_in_side_by_side_is_put_together() {
    let dir = tempdir().unwrap();
    let (one, two) = (
        Node::begin(dir.path(), "one"),
        Node::begin(dir.path(), "two"),
    );
    one.ping(0, 22.9);
    one.intake(10);
    two.claim(20, DurationMs::new(60_000));
    two.confirm(1_000);
    one.ping(361_000, 23.5);
    two.complete(361_500);
    // already at the next rider
    one.ping(500_000, 23.9);
    one.0.close();
    two.0.close();

    let recorded = read_recorded_demand(&[dir.path().to_owned()], &|_, _| ()).unwrap();
    let region = &recorded.regions[0];
    assert_eq!(recorded.read.runs, 2);
    assert_eq!((region.requests.len(), region.drivers.len()), (1, 1));
    let trip = &region.requests[0];
    assert_eq!(trip.requested_at, at(10));
    assert_eq!(trip.dropoff, Some(place(23.5)));
    assert_eq!(trip.trip_s, Some(300.5));
    let driver = &region.drivers[0];
    assert_eq!(
        (driver.from, driver.place, driver.to),
        (START, place(22.9), None)
    );
}
