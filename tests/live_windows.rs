//! A node on the embedded store: windows are decided on time, and sealed whatever happens to the
//! solver.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kheya::{
    decision::{Batch, DecisionError, Phase, WindowSnapshot},
    domain::{DriverId, NodeId, Place, RegionId, RequestId, WindowSeq},
    leadership::LeaseTimes,
    protocol::{
        Counters, Intake, Ping, Pings, ReportSource, RequestDraft, RequestState, WindowReport,
    },
    store::{Clock, MemoryStore, Store, StoreOptions, SystemClock},
    window::{Decider, Node, NodeOptions, StraightLineDecider},
};
use kheya_solver::Method;

/// Decides as ever, but late.
struct Sleepy(Duration);

impl Decider for Sleepy {
    fn decide(
        &self,
        snapshot: &WindowSnapshot,
        method: Method,
        budget: Duration,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Batch, DecisionError> {
        std::thread::sleep(self.0);
        StraightLineDecider.decide(snapshot, method, budget, ended)
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
        clock: Arc::new(SystemClock),
        recorder: None,
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
    let node = node(&store, Sleepy(Duration::from_secs(2)));
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
    // the solver wakes up, and is refused by the store
    tokio::time::sleep(Duration::from_secs(2)).await;
    let again = first_report(&store, &region).await;
    assert_eq!(again, report);
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
    node.finish(Duration::from_secs(1)).await;
}
