//! The embedded store under real threads: regions are bulkheads, and one region's racing callers
//! see one order.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use kheya::{
    domain::{
        CostMs, DriverId, DurationMs, NodeId, Nonce, Place, RegionId, RequestId, UnixMs, WindowId,
        WindowSeq,
    },
    protocol::{
        AcquireLeadership, After, BatchAnswer, BeginOwnWindow, ClaimBatch, ClaimOwnBatch,
        ClaimPair, EventType, Fingerprint, Intake, Ledger, OwnPair, PairOutcome, Ping, Pings,
        RegionRules, ReportBody, RequestDraft, Seal, Sweep, TakeWindow, Taker, invariants::Breach,
    },
    store::{Clock, ManualClock, MemoryStore, Store, StoreError, StoreOptions},
};

fn region(n: u32) -> RegionId {
    RegionId::new(&format!("region-{n}")).unwrap()
}

fn place(n: u32) -> Place {
    Place::new(
        23.7 + f64::from(n % 100) / 1_000.0,
        90.3 + f64::from(n / 100) / 1_000.0,
    )
    .unwrap()
}

fn pings(drivers: u32, at_ms: UnixMs) -> Pings {
    let ping = |n| Ping::at(DriverId::new(&format!("d{n}")).unwrap(), place(n), at_ms);
    Pings {
        pings: (0..drivers).map(ping).collect(),
    }
}

fn requests(n: u32) -> Intake {
    let draft = |n| RequestDraft::at(RequestId::new(&format!("r{n}")).unwrap(), place(n));
    Intake {
        requests: (0..n).map(draft).collect(),
    }
}

fn store_at(clock: &Arc<ManualClock>, options: StoreOptions) -> Arc<dyn Store> {
    let clock: Arc<dyn Clock> = clock.clone();
    Arc::new(MemoryStore::with_clock(options, clock).unwrap())
}

fn begin() -> (Arc<ManualClock>, UnixMs) {
    let now = UnixMs::new(1_796_044_599_485);
    (Arc::new(ManualClock::at(now)), now)
}

/// 500 requests, 5,000 drivers, one window: every step of the store between close and seal.
#[tokio::test]
async fn a_large_window_costs_milliseconds() {
    let (clock, now) = begin();
    let store = store_at(&clock, StoreOptions::default());
    let at = region(0);
    let pinged = Instant::now();
    for n in 0..10 {
        let answer = store
            .ping(&at, pings(5_000, now + DurationMs::new(n)))
            .await
            .unwrap();
        assert_eq!(answer.accepted, 5_000);
    }
    eprintln!("50,000 pings: {:?}", pinged.elapsed());
    let taken = store.intake(&at, requests(500)).await.unwrap().unwrap();
    assert_eq!(taken.requests.len(), 500);
    let leads = store
        .acquire(
            &at,
            AcquireLeadership {
                node: NodeId::new("n").unwrap(),
                nonce: Nonce::new(1),
                lease_ms: DurationMs::new(6_000),
            },
        )
        .await
        .unwrap()
        .unwrap();
    clock.advance(DurationMs::new(500));
    let started = Instant::now();
    let window_seq = WindowSeq::new(1);
    let taker = Taker::Leader {
        epoch: leads.epoch,
        nonce: Nonce::new(1),
    };
    let take = TakeWindow { window_seq, taker };
    let owner = store.take_window(&at, take).await.unwrap().unwrap().owner;
    let snapshot = store.snapshot(&at, window_seq).await.unwrap().unwrap();
    let (seen, drivers) = (snapshot.requests.len(), snapshot.drivers.len());
    for batch_no in 0..2 {
        let pair = |n: u32| ClaimPair {
            request_id: RequestId::new(&format!("r{n}")).unwrap(),
            driver_id: DriverId::new(&format!("d{n}")).unwrap(),
            eta: DurationMs::new(60_000),
            cost: CostMs::new(60_000),
        };
        let pairs = (batch_no * 250..(batch_no + 1) * 250).map(pair).collect();
        let batch = ClaimBatch {
            window_seq,
            owner,
            batch_no,
            pairs,
        };
        let answer = store.claim_batch(&at, batch).await.unwrap().unwrap();
        let claimed = |outcome: &PairOutcome| matches!(outcome, PairOutcome::Claimed { .. });
        assert!(answer.outcomes.iter().all(claimed));
    }
    let seal = Seal {
        window_seq,
        owner,
        body: ReportBody::default(),
        decisions: None,
    };
    assert_eq!(store.seal(&at, seal).await.unwrap().unwrap().assigned, 500);
    let took = started.elapsed();
    eprintln!("take, snapshot, claim 500 and seal: {took:?}");
    assert_eq!((seen, drivers), (500, 5_000));
    assert!(took < Duration::from_millis(250), "{took:?}");
}

fn id<T, E: std::fmt::Debug>(new: fn(&str) -> Result<T, E>, text: &str) -> T {
    new(text).unwrap()
}

fn won(answer: &BatchAnswer) -> u32 {
    let claimed = |outcome: &&PairOutcome| matches!(outcome, PairOutcome::Claimed { .. });
    answer.outcomes.iter().filter(claimed).count() as u32
}

async fn race_for_the_window(store: &dyn Store, at: &RegionId, n: u32) -> u32 {
    let window_seq = WindowSeq::new(1);
    let nonce = Nonce::new(u64::from(n));
    let taker = Taker::Fallback { nonce };
    let take = TakeWindow { window_seq, taker };
    let Ok(taken) = store.take_window(at, take).await.unwrap() else {
        return 0;
    };
    let mut claimed = 0;
    for batch_no in 0..20 {
        let pair = |k: u32| ClaimPair {
            request_id: id(RequestId::new, &format!("r{}", (k * 7 + batch_no * 3) % 60)),
            driver_id: id(DriverId::new, &format!("d{}", (k * 11 + batch_no) % 40)),
            eta: DurationMs::new(1),
            cost: CostMs::new(1),
        };
        let batch = ClaimBatch {
            window_seq,
            owner: taken.owner,
            batch_no,
            pairs: (0..3).map(pair).collect(),
        };
        if let Ok(answer) = store.claim_batch(at, batch).await.unwrap() {
            claimed += won(&answer);
        }
        store.sweep(at, Sweep {}).await.unwrap();
        tokio::task::yield_now().await;
    }
    claimed
}

async fn race_by_own_window(store: &dyn Store, at: &RegionId, n: u32) -> u32 {
    let window_id = id(WindowId::new, &format!("w{n}"));
    let runner = Nonce::new(u64::from(n));
    let begin = BeginOwnWindow {
        window_id: window_id.clone(),
        fingerprint: Fingerprint::of(b""),
        runner,
        work_ms: DurationMs::new(1_000),
    };
    store.begin_own(at, begin).await.unwrap().unwrap();
    let mut claimed = 0;
    for batch_no in 0..20 {
        let pair = |k: u32| OwnPair {
            request: Arc::new(RequestDraft::at(
                id(RequestId::new, &format!("own-{n}-{batch_no}-{k}")),
                place(k),
            )),
            driver_id: id(DriverId::new, &format!("d{}", (k * 13 + batch_no) % 40)),
            eta: DurationMs::new(1),
            cost: CostMs::new(1),
        };
        let batch = ClaimOwnBatch {
            window_id: window_id.clone(),
            runner,
            batch_no,
            lease_ms: None,
            pairs: (0..3).map(pair).collect(),
        };
        claimed += won(&store.claim_own(at, batch).await.unwrap().unwrap());
        tokio::task::yield_now().await;
    }
    claimed
}

/// Fallbacks of a window and own windows of callers race for the same drivers on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_callers_of_a_region_never_hold_a_driver_twice() -> Result<(), Breach> {
    let (clock, now) = begin();
    let store = store_at(&clock, StoreOptions::default());
    let claims = Arc::new(AtomicU32::new(0));
    for n in 0..8 {
        let at = region(n);
        store.ping(&at, pings(40, now)).await.unwrap();
        store.intake(&at, requests(60)).await.unwrap().unwrap();
    }
    clock.advance(DurationMs::new(4_000));
    let mut racers = Vec::new();
    for n in 0..32_u32 {
        let (store, claims) = (store.clone(), claims.clone());
        racers.push(tokio::spawn(async move {
            let at = region(n % 8);
            let won = if n < 16 {
                race_for_the_window(&*store, &at, n).await
            } else {
                race_by_own_window(&*store, &at, n).await
            };
            claims.fetch_add(won, Ordering::Relaxed);
        }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
    let mut booked = 0;
    for n in 0..8 {
        let page = store
            .events(&region(n), After::Oldest, 1_000)
            .await
            .unwrap()
            .unwrap();
        let mut ledger = Ledger::default();
        for event in &page.events {
            ledger.book(event)?;
        }
        let assigned = |event: &&kheya::protocol::Event| event.kind == EventType::Assigned;
        assert_eq!(
            ledger.drivers.len(),
            page.events.iter().filter(assigned).count()
        );
        booked += ledger.drivers.len() as u32;
        let overview = store.overview(&region(n)).await.unwrap();
        assert_eq!(overview.counters.double_claims, 0);
    }
    assert!(
        booked >= 8 * 20,
        "{booked} claims are too few to prove anything"
    );
    assert_eq!(booked, claims.load(Ordering::Relaxed));
    Ok(())
}

#[tokio::test]
async fn regions_are_bounded_and_do_not_touch_each_other() {
    let (clock, now) = begin();
    let options = StoreOptions {
        max_regions: 3,
        ..StoreOptions::default()
    };
    let store = store_at(&clock, options);
    let mut born = store.watch_regions();
    for n in 0..3 {
        store.ping(&region(n), pings(n + 1, now)).await.unwrap();
    }
    assert_eq!(*born.borrow_and_update(), 3);
    let refused = store.ping(&region(3), pings(1, now)).await;
    assert_eq!(refused.unwrap_err(), StoreError::TooManyRegions(3));
    assert_eq!(
        store.regions().await.unwrap(),
        [region(0), region(1), region(2)]
    );
    for n in 0..3 {
        let overview = store.overview(&region(n)).await.unwrap();
        assert_eq!(overview.drivers, n + 1);
    }
}

#[test]
fn a_store_refuses_rules_that_cannot_stand() {
    let rules = RegionRules {
        lease_ms: DurationMs::new(5_000),
        ..RegionRules::default()
    };
    let options = StoreOptions {
        rules,
        ..StoreOptions::default()
    };
    assert!(MemoryStore::new(options).is_err());
}
