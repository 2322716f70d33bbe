//! A node on the embedded store: windows are decided on time, and sealed whatever happens to the
//! solver.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use kheya::{
    decision::{Batch, DecisionError, Phase, SideConstraint, WindowSnapshot},
    domain::{DriverId, NodeId, Place, RegionId, RequestId, WindowId, WindowSeq},
    http::{OwnWindowCall, OwnWindowError},
    leadership::LeaseTimes,
    protocol::{
        After, Counters, EventType, Fingerprint, Intake, OwnRefusal, Ping, Pings, ReportSource,
        RequestDraft, RequestState, WindowReport,
    },
    store::{Clock, MemoryStore, Store, StoreOptions, SystemClock},
    window::{Decider, Node, NodeOptions, StraightLineDecider},
};
use kheya_solver::Method;

/// Decides as ever, but late; counts how often it woke up.
struct Sleepy(Duration, Arc<AtomicUsize>);

impl Decider for Sleepy {
    fn decide(
        &self,
        snapshot: &WindowSnapshot,
        method: Method,
        budget: Duration,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Batch, DecisionError> {
        std::thread::sleep(self.0);
        let decided = StraightLineDecider.decide(snapshot, method, budget, ended);
        self.1.fetch_add(1, Ordering::SeqCst);
        decided
    }
}

fn store() -> Arc<dyn Store> {
    let mut options = StoreOptions::default();
    options.rules.window_ms = kheya::domain::DurationMs::new(500);
    options.rules.budget_ms = kheya::domain::DurationMs::new(200);
    options.rules.grace_ms = kheya::domain::DurationMs::new(100);
    options.document = r#"{"window_ms":500,"budget_ms":200,"grace_ms":100}"#.into();
    Arc::new(MemoryStore::new(options).unwrap())
}

fn node(store: &Arc<dyn Store>, decider: impl Decider + 'static) -> Arc<Node> {
    Node::start(NodeOptions {
        node: NodeId::new("n1").unwrap(),
        store: store.clone(),
        decider: Arc::new(decider),
        recorder: None,
        demand_models: BTreeMap::new(),
        times: LeaseTimes {
            retry: Duration::from_millis(100),
            ..LeaseTimes::default()
        },
    })
    .unwrap()
}

fn place(n: usize) -> Place {
    Place::new(
        23.75 + (n % 50) as f64 * 1e-3,
        90.4 + (n / 50) as f64 * 1e-3,
    )
    .unwrap()
}

async fn send(store: &Arc<dyn Store>, region: &RegionId, requests: usize, drivers: usize) {
    let now = SystemClock.now().ms();
    let pings =
        (0..drivers).map(|n| Ping::at(DriverId::new(&format!("d{n:05}")).unwrap(), place(n), now));
    store
        .ping(
            region,
            Pings {
                pings: pings.collect(),
            },
        )
        .await
        .unwrap();
    let drafts = (0..requests)
        .map(|n| RequestDraft::at(RequestId::new(&format!("r{n:05}")).unwrap(), place(n * 7)));
    let taken = store
        .intake(
            region,
            Intake {
                requests: drafts.collect(),
            },
        )
        .await
        .unwrap()
        .unwrap();
    assert!(taken.rejected.is_empty(), "{taken:?}");
}

async fn first_report(store: &Arc<dyn Store>, region: &RegionId) -> Arc<WindowReport> {
    let give_up = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(report) = store
            .reports(region, WindowSeq::default(), 1)
            .await
            .unwrap()
            .first()
        {
            return report.clone();
        }
        assert!(Instant::now() < give_up, "no window was sealed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_decided_as_a_batch_soon_after_its_close() {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, StraightLineDecider);
    send(&store, &region, 100, 400).await;
    let report = first_report(&store, &region).await;
    assert_eq!(report.body.source, ReportSource::Batch, "{report:?}");
    assert_eq!(report.assigned, 100);
    assert!(
        (report.sealed_at_ms - report.closed_at_ms).get() < 200,
        "{report:?}"
    );
    let request = store
        .request(&region, &RequestId::new("r00007").unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(request.state, RequestState::Assigned);
    node.finish(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solver_that_sleeps_loses_its_window_to_the_fallback() {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let woke = Arc::new(AtomicUsize::new(0));
    let node = node(&store, Sleepy(Duration::from_secs(2), woke.clone()));
    send(&store, &region, 20, 50).await;
    let report = first_report(&store, &region).await;
    assert_eq!(report.body.source, ReportSource::Fallback, "{report:?}");
    assert_eq!(report.body.cause.as_deref(), Some("leader_late"));
    assert_eq!(report.assigned, 20);
    // budget + grace + 500 ms after the close
    assert!(
        (report.sealed_at_ms - report.closed_at_ms).get() < 800,
        "{report:?}"
    );
    // the solver wakes up with twenty pairs of its own, and is refused by the store
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(woke.load(Ordering::SeqCst), 1, "the late decision was made");
    let again = first_report(&store, &region).await;
    assert_eq!(again, report);
    let page = store
        .events(&region, After::Oldest, 1000)
        .await
        .unwrap()
        .unwrap();
    let assigned = page
        .events
        .iter()
        .filter(|event| event.kind == EventType::Assigned);
    assert_eq!(assigned.count(), 20, "nobody was claimed twice");
    let overview = store.overview(&region).await.unwrap();
    assert_eq!(overview.counters, Counters::default());
    node.finish(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_solver_in_one_region_leaves_the_others_alone() {
    /// Sleeps only over windows with a request of the slow region.
    struct SleepyIn(RequestId);

    impl Decider for SleepyIn {
        fn decide(
            &self,
            snapshot: &WindowSnapshot,
            method: Method,
            budget: Duration,
            ended: &mut dyn FnMut(Phase),
        ) -> Result<Batch, DecisionError> {
            if snapshot
                .requests()
                .iter()
                .any(|pending| pending.request.id == self.0)
            {
                std::thread::sleep(Duration::from_secs(2));
            }
            StraightLineDecider.decide(snapshot, method, budget, ended)
        }
    }

    let store = store();
    let node = node(&store, SleepyIn(RequestId::new("slow").unwrap()));
    let slow = RegionId::new("slow").unwrap();
    let draft = RequestDraft::at(RequestId::new("slow").unwrap(), place(1));
    store
        .intake(
            &slow,
            Intake {
                requests: vec![draft],
            },
        )
        .await
        .unwrap()
        .unwrap();
    let mut others = Vec::new();
    for n in 0..50 {
        let region = RegionId::new(&format!("region-{n}")).unwrap();
        send(&store, &region, 5, 20).await;
        others.push(region);
    }
    for region in others {
        let report = first_report(&store, &region).await;
        assert_eq!(report.body.source, ReportSource::Batch, "{report:?}");
        assert_eq!(report.assigned, 5);
    }
    let delayed = first_report(&store, &slow).await;
    assert_eq!(delayed.body.source, ReportSource::Fallback, "{delayed:?}");
    node.finish(Duration::from_secs(1)).await;
}

fn own_call(window: &str, body: &str, requests: Vec<RequestDraft>) -> OwnWindowCall {
    OwnWindowCall {
        window_id: WindowId::new(window).unwrap(),
        fingerprint: Fingerprint::of(body.as_bytes()),
        request_places: (0..requests.len()).collect(),
        requests,
        drivers: None,
        driver_places: Vec::new(),
        constraints: Vec::new(),
        edges: None,
        budget_ms: None,
        lease_ms: None,
        rejected: Vec::new(),
    }
}

fn draft(id: &str, at: usize) -> RequestDraft {
    RequestDraft::at(RequestId::new(id).unwrap(), place(at))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_window_answers_every_request_once_and_the_same_again() {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, StraightLineDecider);
    let now = SystemClock.now().ms();
    let pings = (0..2).map(|n| Ping::at(DriverId::new(&format!("d{n}")).unwrap(), place(n), now));
    let pings = Pings {
        pings: pings.collect(),
    };
    store.ping(&region, pings).await.unwrap();
    let intake = Intake {
        requests: vec![draft("waits", 400)],
    };
    store.intake(&region, intake).await.unwrap().unwrap();

    let late = {
        let mut late = draft("late", 0);
        late.requested_at_ms = Some(now - kheya::domain::DurationMs::new(3_600_000));
        late
    };
    let requests = vec![
        draft("a", 0),
        draft("b", 1),
        draft("c", 2),
        draft("a", 3),
        late,
        draft("waits", 400),
    ];
    let call = own_call("w1", "body", requests);
    let first = node.solve_own_window(&region, call.clone()).await.unwrap();
    let again = node.solve_own_window(&region, call).await.unwrap();
    assert_eq!(first, again, "the same id and body get the same bytes");

    let answer: serde_json::Value = serde_json::from_str(&first).unwrap();
    let ids = |list: &str, field: &str| -> Vec<String> {
        let entries = answer[list].as_array().unwrap().iter();
        entries
            .map(|entry| entry[field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("assignments", "request_id").len(), 2, "{answer}");
    let mut unmatched = ids("unmatched", "reason");
    unmatched.sort();
    assert_eq!(unmatched, ["already_pending", "outbid"], "{answer}");
    assert_eq!(
        ids("rejected", "code"),
        ["duplicate_in_batch", "already_expired"],
        "{answer}"
    );
    let places: Vec<u64> = (0..2)
        .map(|n| answer["rejected"][n]["index"].as_u64().unwrap())
        .collect();
    assert_eq!(places, [3, 4], "{answer}");

    let other = own_call("w1", "another body", vec![draft("z", 0)]);
    let refused = node.solve_own_window(&region, other).await.unwrap_err();
    assert!(
        matches!(refused, OwnWindowError::Refused(OwnRefusal::WindowConflict)),
        "{refused}"
    );
    node.finish(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decider_that_panics_is_replaced_by_the_greedy_rule_at_once() {
    struct Panics;

    impl Decider for Panics {
        fn decide(
            &self,
            _: &WindowSnapshot,
            _: Method,
            _: Duration,
            _: &mut dyn FnMut(Phase),
        ) -> Result<Batch, DecisionError> {
            // no hook: to write a backtrace can take longer than a window has
            std::panic::resume_unwind(Box::new("planted"));
        }
    }

    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, Panics);
    send(&store, &region, 20, 50).await;
    let report = first_report(&store, &region).await;
    assert_eq!(report.body.source, ReportSource::Fallback, "{report:?}");
    assert_eq!(report.body.cause.as_deref(), Some("solver_failed"));
    assert_eq!(report.assigned, 20);
    node.finish(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_soon_although_riders_wait_for_whom_there_is_no_car() {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, StraightLineDecider);
    send(&store, &region, 3, 1).await;
    first_report(&store, &region).await;
    let stopping = Instant::now();
    node.finish(Duration::from_secs(30)).await;
    assert!(
        stopping.elapsed() < Duration::from_secs(5),
        "{:?}",
        stopping.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_one_own_window_at_once_get_the_same_bytes_and_only_claimed_pairs() {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, StraightLineDecider);
    let now = SystemClock.now().ms();
    let pings = (0..300).map(|n| Ping::at(DriverId::new(&format!("d{n}")).unwrap(), place(n), now));
    let pings = Pings {
        pings: pings.collect(),
    };
    store.ping(&region, pings).await.unwrap();
    let mut told = 0;
    for window in 0..20 {
        let requests = (0..10).map(|n| draft(&format!("r{window}-{n}"), n * 20));
        let call = own_call(&format!("w{window}"), "body", requests.collect());
        let callers = (0..5).map(|_| {
            let (node, region, call) = (node.clone(), region.clone(), call.clone());
            tokio::spawn(async move { node.solve_own_window(&region, call).await.unwrap() })
        });
        let mut answers = Vec::new();
        for caller in callers.collect::<Vec<_>>() {
            answers.push(caller.await.unwrap());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        let answer: serde_json::Value = serde_json::from_str(&answers[0]).unwrap();
        for pair in answer["assignments"].as_array().unwrap() {
            let id = RequestId::new(pair["request_id"].as_str().unwrap()).unwrap();
            let known = store.request(&region, &id).await.unwrap().unwrap();
            let claimed = known.assignment.unwrap();
            assert_eq!(pair["driver_id"], claimed.driver_id.as_str());
            assert_eq!(pair["fence"], claimed.fence.get());
            told += 1;
        }
    }
    let page = store.events(&region, After::Oldest, 1000).await;
    let events = page.unwrap().unwrap().events;
    let claimed = events
        .iter()
        .filter(|event| event.kind == EventType::Assigned);
    assert_eq!(claimed.count(), told, "every claim was told");
    node.finish(Duration::from_secs(1)).await;
}

fn side(name: &str, max: Option<u32>, min: Option<u32>) -> SideConstraint {
    SideConstraint {
        name: name.into(),
        drivers: None,
        requests: None,
        max,
        min,
        standing: 0,
    }
}

/// A window of six riders under a cap, a floor over a driver who is not there, and its answer.
async fn constrained_window(decider: impl Decider + 'static) -> serde_json::Value {
    let (store, region) = (store(), RegionId::new("dhaka").unwrap());
    let node = node(&store, decider);
    let now = SystemClock.now().ms();
    let pings = (0..8).map(|n| Ping::at(DriverId::new(&format!("d{n}")).unwrap(), place(n), now));
    let pings = Pings {
        pings: pings.collect(),
    };
    store.ping(&region, pings).await.unwrap();
    let requests = (0..6).map(|n| draft(&format!("r{n}"), n)).collect();
    let ids = |prefix: &str, numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|n| format!("{prefix}{n}")).collect()
    };
    let capped = ids("r", &[3, 1, 2, 0]);
    let call = OwnWindowCall {
        constraints: vec![
            SideConstraint {
                requests: Some(
                    capped
                        .iter()
                        .map(|id| RequestId::new(id).unwrap())
                        .collect(),
                ),
                ..side("cap", Some(2), None)
            },
            SideConstraint {
                drivers: Some(
                    ids("d", &[7, 99])
                        .iter()
                        .map(|id| DriverId::new(id).unwrap())
                        .collect(),
                ),
                ..side("floor", None, Some(2))
            },
        ],
        ..own_call("w", "body", requests)
    };
    let answer = node.solve_own_window(&region, call.clone()).await.unwrap();
    let strange = OwnWindowCall {
        window_id: WindowId::new("x").unwrap(),
        constraints: vec![SideConstraint {
            requests: Some(vec![RequestId::new("stranger").unwrap()]),
            ..side("cap", Some(2), None)
        }],
        ..call
    };
    let refused = node.solve_own_window(&region, strange).await.unwrap_err();
    assert!(
        matches!(&refused, OwnWindowError::Invalid(errors) if errors[0].path == "constraints[0].requests[0]"),
        "{refused:?}"
    );
    node.finish(Duration::from_secs(1)).await;
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_window_keeps_its_constraints() {
    let answer = constrained_window(StraightLineDecider).await;
    assert_eq!(answer["source"], "own", "{answer}");
    let [cap, floor] = [&answer["constraints"][0], &answer["constraints"][1]];
    assert_eq!((&cap["name"], &cap["count"]), (&"cap".into(), &2.into()));
    // d7 serves, and d99 is not there: one short
    assert_eq!(
        (&floor["count"], &floor["shortfall"]),
        (&1.into(), &1.into()),
        "{answer}"
    );
    let pairs = answer["assignments"].as_array().unwrap();
    assert_eq!(pairs.len(), 4, "{answer}");
    assert!(pairs.iter().any(|pair| pair["driver_id"] == "d7"));
    let unmatched = answer["unmatched"].as_array().unwrap();
    assert!(
        unmatched.iter().all(|left| left["reason"] == "constraint"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greedy_rule_keeps_the_caps_of_an_own_window() {
    struct Fails;

    impl Decider for Fails {
        fn decide(
            &self,
            _: &WindowSnapshot,
            _: Method,
            _: Duration,
            _: &mut dyn FnMut(Phase),
        ) -> Result<Batch, DecisionError> {
            Err(kheya_solver::GraphError::Rows.into())
        }
    }

    let answer = constrained_window(Fails).await;
    assert_eq!(answer["source"], "fallback", "{answer}");
    let [cap, floor] = [&answer["constraints"][0], &answer["constraints"][1]];
    assert_eq!(cap["count"], 2, "{answer}");
    // floors are not aimed at, but told
    assert_eq!(
        (&floor["count"], &floor["shortfall"]),
        (&0.into(), &2.into()),
        "{answer}"
    );
    let unmatched = answer["unmatched"].as_array().unwrap();
    assert_eq!(unmatched.len(), 2, "{answer}");
    assert!(
        unmatched.iter().all(|left| left["reason"] == "constraint"),
        "{answer}"
    );
}
