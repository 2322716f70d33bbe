//! A leader dies in the middle of a window, with the times that are shipped: the window is sealed by
//! another node in time, and soon another leads.
//!
//! `KHEYA_HANDOVERS=n` kills n leaders.

use std::{env, path::Path, thread, time::Duration};

use kheya_faults::{Delay, Towards};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{
    calls::Caller,
    chance::Chance,
    check::{self, Evidence},
    late::LateWrites,
    load::Load,
    stage::{AS_SHIPPED, BINARY, NODES, Stage, machine_ms},
    watching::{reports, wait_ended, wait_even, wait_sealed, wait_taken},
};

/// Leaders killed in a normal run.
const HANDOVERS: usize = 6;

/// Regions, a third for each node: each death is seen by several.
const REGIONS: usize = 12;

/// The shipped times.
const LEASE_MS: i64 = 6_000;
const WINDOW_MS: i64 = 3_000;
const BUDGET_AND_GRACE_MS: i64 = 750;

/// How much later than budget and grace an overdue window is sealed at most.
const SLACK_MS: i64 = 500;

/// By how much the load is slower than that of a schedule.
const SLOWER: f64 = 6.0;

/// What a region went through when its leader died.
#[derive(Debug)]
struct Handover {
    /// From the close of the window that was open or under way, to its seal.
    seal_after_close_ms: i64,
    /// Who sealed it: `fallback`, or the next leader's `batch`.
    source: String,
    /// From the death to the next seal of a batch.
    batch_after_death_ms: i64,
}

#[test]
fn a_dead_leaders_window_is_sealed_in_time_and_another_leads() {
    let handovers = env::var("KHEYA_HANDOVERS").map_or(HANDOVERS, |n| n.parse().unwrap());
    let runtime = Runtime::new().unwrap();
    let on = runtime.handle();
    let stage = Stage::start(1, false, &AS_SHIPPED, Path::new(BINARY));
    let late_writes = LateWrites::listen(&stage);
    let caller = Caller::new(stage.urls());
    let mut chance = Chance::new(2026);
    let regions: Vec<String> = (0..REGIONS).map(|region| format!("h{region}")).collect();
    let mut loads = Vec::new();
    for region in &regions {
        loads.push(Load::begin(
            on,
            &caller,
            std::slice::from_ref(region),
            &[],
            7,
            SLOWER,
        ));
        // their windows close at different times
        thread::sleep(Duration::from_millis(WINDOW_MS as u64 / REGIONS as u64));
    }

    let mut seen = Vec::new();
    for number in 0..handovers {
        let all: Vec<usize> = (0..NODES).collect();
        let patience = Duration::from_secs(30);
        let leaders = on.block_on(wait_even(&caller, &regions, &all, patience));
        let victim = number % NODES;
        let led: Vec<String> = leaders
            .into_iter()
            .filter(|(_, leader)| *leader == victim)
            .map(|(region, _)| region)
            .collect();
        let slow = Delay::Fixed(Duration::from_millis(25));
        stage.proxies[victim].delay(Towards::Server, slow);
        let struck = &led[chance.below(led.len())];
        let redis = stage.redis.primary();
        assert!(
            wait_taken(&redis, struck, Duration::from_secs(10)),
            "{struck} has no window"
        );
        stage.nodes[victim].kill9();
        let died_ms = machine_ms();
        stage.proxies[victim].delay(Towards::Server, Delay::None);
        for region in &led {
            seen.push(on.block_on(handover(&caller, region, died_ms)));
        }
        stage.nodes[victim].restart();
    }
    tell(&seen);

    let mut broken = Vec::new();
    for load in &mut loads {
        on.block_on(load.end_riders());
    }
    broken.extend(on.block_on(wait_ended(&caller, &regions, Duration::from_secs(20))));
    wait_sealed(&stage.redis.primary(), &regions);
    for load in &mut loads {
        on.block_on(load.end());
    }
    stage.proxies.iter().for_each(kheya_faults::Proxy::heal);
    let (late, accepted) = late_writes.send_again(&stage.redis.primary());
    println!("writes that came too late: {late:?}");
    broken.extend(accepted);
    for world in loads.iter().flat_map(|load| &load.worlds) {
        let evidence = on.block_on(Evidence::collect(&caller, world, &[]));
        broken.extend(check::check(&evidence).broken);
        let within = BUDGET_AND_GRACE_MS + SLACK_MS;
        broken.extend(check::sealed_in_time(
            &world.region,
            &evidence.reports,
            within,
        ));
    }
    broken.extend(on.block_on(check::no_double_claims(&caller)));
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(late.claims_refused > 0, "no claim ever came too late");
    for handover in &seen {
        let sealed = handover.seal_after_close_ms <= BUDGET_AND_GRACE_MS + SLACK_MS;
        let led = handover.batch_after_death_ms <= LEASE_MS + WINDOW_MS;
        assert!(sealed && led, "{handover:?}");
    }
    assert!(
        seen.iter().any(|handover| handover.source == "fallback"),
        "no window needed the fallback"
    );
}

/// Waits until a region has a batch again, and tells how it came through.
async fn handover(caller: &Caller, region: &str, died_ms: i64) -> Handover {
    let number = |report: &Value, name: &str| report[name].as_i64().unwrap();
    let give_up = died_ms + 4 * (LEASE_MS + WINDOW_MS);
    loop {
        let reports = reports(caller, region).await;
        let mut after = reports
            .iter()
            .filter(|report| number(report, "sealed_at_ms") >= died_ms);
        let first = after.next();
        let batch = first
            .into_iter()
            .chain(after)
            .find(|report| report["source"] == "batch");
        if let (Some(first), Some(batch)) = (first, batch) {
            return Handover {
                seal_after_close_ms: number(first, "sealed_at_ms") - number(first, "closed_at_ms"),
                source: first["source"].as_str().unwrap().to_owned(),
                batch_after_death_ms: number(batch, "sealed_at_ms") - died_ms,
            };
        }
        assert!(machine_ms() < give_up, "{region} has no batch any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn tell(seen: &[Handover]) {
    let spread = |what: &str, mut times: Vec<i64>| {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "{what}: least {} ms, median {} ms, p90 {} ms, most {} ms, of {}",
            at(0.0),
            at(0.5),
            at(0.9),
            at(1.0),
            times.len()
        );
    };
    let fallbacks = seen.iter().filter(|handover| handover.source == "fallback");
    let times = fallbacks.map(|handover| handover.seal_after_close_ms);
    spread("fallback seal after the close", times.collect());
    let times = seen.iter().map(|handover| handover.batch_after_death_ms);
    spread("next batch after the death", times.collect());
}
