//! What looking ahead costs a window: 500 requests, 5,000 drivers of whom 1,000 are on trips that
//! end within a minute, and 2,000 phantoms, in a city of about Manhattan's size and density.
//!
//! `cargo bench --bench look_ahead`: the whole decision, candidates and proof included, alone and
//! looking ahead, to requests like those of late and to learned ones. Machines differ and are noisy: compare runs of one machine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kheya::{
    config::RegionConfig,
    decision::{
        DriverSnapshot, Foresight, Held, PendingRequest, Phantom, Phase, RequestSnapshot, TripEnd,
        WindowSnapshot, decide_alone, decide_batch,
    },
    domain::{DriverId, DurationMs, Place, RequestId, UnixMs},
    eta::StraightLine,
    supply::Position,
};
use kheya_solver::Options;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

type Failed = Box<dyn std::error::Error>;

const NOW: UnixMs = UnixMs::new(1_767_720_600_000);
const REQUESTS: usize = 500;
const DRIVERS: usize = 5_000;
const ON_TRIPS: usize = 1_000;
const PHANTOMS: usize = 2_000;
const RUNS: usize = 60;

fn main() -> Result<(), Failed> {
    // cargo passes flags such as --bench; a test run of the benches only checks that they build
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    for (name, learned) in [("demand of late", false), ("learned demand", true)] {
        println!("{name}");
        time(&snapshot(&mut ChaCha8Rng::seed_from_u64(1), learned)?)?;
    }
    Ok(())
}

/// Decides a window again and again, alone and looking ahead.
fn time(snapshot: &WindowSnapshot) -> Result<(), Failed> {
    let eta = StraightLine::of(snapshot.config());
    let options = Options::default();
    let mut alone = Vec::new();
    let mut ahead = Vec::new();
    let mut phases = [Duration::ZERO; 5];
    for _ in 0..RUNS {
        let started = Instant::now();
        decide_alone(snapshot, &eta, &options, |_| ())?;
        alone.push(started.elapsed());
        let started = Instant::now();
        let mut last = started;
        let batch = decide_batch(snapshot, &eta, &options, |phase| {
            let now = Instant::now();
            phases[place(phase)] += now - last;
            last = now;
        })?;
        ahead.push(started.elapsed());
        let facts = batch
            .decision
            .ahead
            .ok_or("the window did not look ahead")?;
        if ahead.len() == 1 {
            println!(
                "{} pairs, {} plans, {} edges, {} soon free",
                batch.decision.assignments.len(),
                facts.plans.len(),
                facts.edges,
                facts.soon_free
            );
        }
    }
    for (name, times) in [("alone", &mut alone), ("looking ahead", &mut ahead)] {
        times.sort();
        let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
        println!(
            "{name:<14} {:>7.2} ms least, {:>7.2} median, {:>7.2} p95",
            ms(at(0.0)),
            ms(at(0.5)),
            ms(at(0.95))
        );
    }
    let names = ["search", "eta", "build", "solve", "verify"];
    for (name, time) in names.into_iter().zip(phases) {
        println!("  {name:<8} {:>7.2} ms mean", ms(time) / RUNS as f64);
    }
    Ok(())
}

const fn place(phase: Phase) -> usize {
    match phase {
        Phase::Search => 0,
        Phase::Eta => 1,
        Phase::Build => 2,
        Phase::Solve => 3,
        Phase::Verify => 4,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A place in a strip of 4 km by 16 km.
fn somewhere(random: &mut ChaCha8Rng) -> Result<Place, Failed> {
    let mut unit = || f64::from(random.next_u32()) / f64::from(u32::MAX);
    Ok(Place::new(40.70 + 0.144 * unit(), -74.0 + 0.047 * unit())?)
}

fn snapshot(random: &mut ChaCha8Rng, learned: bool) -> Result<WindowSnapshot, Failed> {
    let mut patch = serde_json::Map::new();
    patch.insert("plan_ahead_ms".into(), 60_000.into());
    patch.insert("demand_ahead_ms".into(), 60_000.into());
    let patched = RegionConfig::default().patched(&patch);
    let config = patched.map_err(|errors| format!("{errors:?}"))?.config;
    let mut requests = Vec::new();
    for n in 0..REQUESTS {
        requests.push(PendingRequest {
            request: Arc::new(RequestSnapshot {
                id: RequestId::new(&format!("r{n:04}"))?,
                rider_id: None,
                pickup: Some(Position::new(somewhere(random)?)),
                vehicle_classes: Vec::new(),
                requested_at_ms: NOW - DurationMs::new(n as i64 * 6),
                unmatched_cost_s: None,
                max_pickup_eta_s: None,
                exclude_driver_ids: Vec::new(),
            }),
            left_over: 0,
        });
    }
    let mut drivers = Vec::new();
    for n in 0..DRIVERS {
        let id = DriverId::new(&format!("d{n:05}"))?;
        let mut driver = DriverSnapshot::available(id, Position::new(somewhere(random)?));
        if n % (DRIVERS / ON_TRIPS) == 0 {
            driver.held = Held::OnTrip;
            driver.trip_end = Some(TripEnd {
                place: somewhere(random)?,
                at_ms: NOW + DurationMs::new(i64::from(random.next_u32() % 60_000)),
            });
        }
        drivers.push(Arc::new(driver));
    }
    let mut phantoms = Vec::new();
    for n in 0..PHANTOMS {
        let age = DurationMs::new(n as i64 * 30 + 1);
        phantoms.push(Phantom {
            learned,
            at_ms: if learned { NOW + age } else { NOW - age },
            pickup: Position::new(somewhere(random)?),
        });
    }
    let snapshot = WindowSnapshot::new(NOW, config, 1, requests, drivers, None);
    let snapshot = snapshot.map_err(|errors| format!("{errors:?}"))?;
    let foresight = Foresight::new(phantoms, Vec::new());
    let snapshot = snapshot.with_foresight(foresight);
    Ok(snapshot.map_err(|errors| format!("{errors:?}"))?)
}
