//! How long a live window takes from its close to its seal: 500 requests and 5,000 drivers in one
//! region; then many regions at once.
//!
//! `cargo bench --bench close_to_seal` (about two minutes) on the embedded store; with
//! `KHEYA_BENCH_STORE=redis://127.0.0.1:6379` on that server, which should be empty. Prints the distribution of
//! `sealed_at_ms − closed_at_ms` and of the phases. Machines differ and are noisy: compare runs of
//! one machine.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kheya::{
    domain::{DriverId, DurationMs, NodeId, Place, RegionId, RequestId, WindowSeq},
    leadership::LeaseTimes,
    protocol::{
        ClaimKey, Complete, Confirm, Intake, Ping, Pings, ReportSource, RequestDraft, TripOutcome,
        WindowReport,
    },
    store::{
        Clock, LinkOptions, MemoryStore, RedisAddress, RedisStore, Store, StoreOptions, SystemClock,
    },
    window::{Node, NodeOptions, StraightLineDecider},
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    // cargo passes flags such as --bench; a test run of the benches only checks that they build
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        measure("1 region, 500 requests × 5,000 drivers", 1, 500, 5_000, 100).await?;
        measure(
            "200 regions, 5 requests × 100 drivers each",
            200,
            5,
            100,
            10,
        )
        .await
    })
}

struct City {
    store: Arc<dyn Store>,
    region: RegionId,
    random: ChaCha8Rng,
    requests: usize,
    drivers: usize,
    sent: usize,
}

impl City {
    /// A place in a town of 12 km.
    fn place(&mut self) -> Result<Place, Failed> {
        let mut unit = || (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Ok(Place::new(23.7 + 0.11 * unit(), 90.35 + 0.12 * unit())?)
    }

    async fn ping(&mut self) -> Result<(), Failed> {
        let at_ms = SystemClock.now().ms();
        let mut pings = Vec::with_capacity(self.drivers);
        for n in 0..self.drivers {
            pings.push(Ping::at(
                DriverId::new(&format!("d{n:05}"))?,
                self.place()?,
                at_ms,
            ));
        }
        self.store.ping(&self.region, Pings { pings }).await?;
        Ok(())
    }

    async fn ask(&mut self) -> Result<(), Failed> {
        let mut requests = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            self.sent += 1;
            let id = RequestId::new(&format!("r{:07}", self.sent))?;
            requests.push(RequestDraft::at(id, self.place()?));
        }
        self.store
            .intake(&self.region, Intake { requests })
            .await??;
        Ok(())
    }

    /// Every claimed driver drives its rider home at once, so that the next window has as many.
    async fn free_everyone(&self) -> Result<(), Failed> {
        let claims = self.store.claims(&self.region, None, None, 1000).await?;
        for claim in claims.entries {
            let key = ClaimKey {
                driver_id: claim.driver_id,
                request_id: claim.claim.request_id,
                fence: claim.claim.fence,
            };
            self.store
                .confirm(&self.region, Confirm { claim: key.clone() })
                .await??;
            let outcome = TripOutcome::Done;
            self.store
                .complete(
                    &self.region,
                    Complete {
                        claim: key,
                        outcome,
                    },
                )
                .await??;
        }
        Ok(())
    }

    async fn sealed_after(&self, seq: WindowSeq) -> Result<Arc<WindowReport>, Failed> {
        let give_up = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(report) = self.store.reports(&self.region, seq, 1).await?.first() {
                return Ok(report.clone());
            }
            if Instant::now() > give_up {
                return Err("no window was sealed".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn run(mut self, windows: usize) -> Result<Vec<Arc<WindowReport>>, Failed> {
        let mut reports = Vec::new();
        let mut seq = WindowSeq::default();
        for _ in 0..windows {
            self.ping().await?;
            self.ask().await?;
            let report = self.sealed_after(seq).await?;
            seq = report.window_seq;
            reports.push(report);
            self.free_everyone().await?;
        }
        Ok(reports)
    }
}

async fn open(options: StoreOptions) -> Result<Arc<dyn Store>, Failed> {
    match std::env::var("KHEYA_BENCH_STORE") {
        Ok(url) => {
            let address = RedisAddress::parse(&url)?;
            let (store, _) = RedisStore::open(&address, options, LinkOptions::default()).await?;
            Ok(Arc::new(store))
        }
        Err(_) => Ok(Arc::new(MemoryStore::new(options)?)),
    }
}

async fn measure(
    title: &str,
    regions: usize,
    requests: usize,
    drivers: usize,
    windows: usize,
) -> Result<(), Failed> {
    let mut options = StoreOptions::default();
    options.rules.window_ms = DurationMs::new(500);
    options.document = r#"{"window_ms":500}"#.into();
    let store = open(options).await?;
    let node = Node::start(NodeOptions {
        node: NodeId::new("bench")?,
        store: store.clone(),
        decider: Arc::new(StraightLineDecider),
        times: LeaseTimes::default(),
        recorder: None,
        demand_models: std::collections::BTreeMap::new(),
    })?;
    let mut cities = Vec::new();
    for n in 0..regions {
        let city = City {
            store: store.clone(),
            region: RegionId::new(&format!("region-{n}"))?,
            random: ChaCha8Rng::seed_from_u64(n as u64),
            requests,
            drivers,
            sent: 0,
        };
        let running =
            tokio::spawn(async move { city.run(windows).await.map_err(|e| e.to_string()) });
        cities.push(running);
    }
    let mut reports = Vec::new();
    for city in cities {
        reports.extend(city.await??);
    }
    node.finish(Duration::from_secs(2)).await;

    println!("{title}: {} windows", reports.len());
    let mut sources: BTreeMap<ReportSource, usize> = BTreeMap::new();
    for report in &reports {
        *sources.entry(report.body.source).or_default() += 1;
    }
    println!("  sources {sources:?}");
    show(
        "close → sealed",
        reports
            .iter()
            .map(|r| (r.sealed_at_ms - r.closed_at_ms).get() as f64),
    );
    show("build", reports.iter().map(|r| r.body.build_ms.get()));
    show("eta", reports.iter().map(|r| r.body.eta_ms.get()));
    show("solve", reports.iter().map(|r| r.body.solve_ms.get()));
    show("verify", reports.iter().map(|r| r.body.verify_ms.get()));
    show("claim", reports.iter().map(|r| r.body.claim_ms.get()));
    Ok(())
}

fn show(name: &str, values: impl Iterator<Item = f64>) {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |q| kheya::replay::quantile(&values, q).unwrap_or_default();
    println!(
        "  {name:<15} p50 {:>7.2} ms  p99 {:>7.2} ms  max {:>7.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
