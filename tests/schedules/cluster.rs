//! Regions on a Redis Cluster: when the primary of a shard dies, regions of the other shards do not
//! notice (INV-11), and those of the shard come back by themselves, in a new generation.
//!
//! `KHEYA_CLUSTER_FAILOVERS=n` kills n primaries, and waits for the end of each quarantine.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use kheya_faults::{AppendOnly, Cluster, Node, RedisSettings};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{
    calls::Caller,
    check::{self, Evidence, Loss},
    load::Load,
    stage::{BINARY, NODES, Times, config_file, machine_ms, start_nodes},
    watching::{leader_of, quarantined, reports, wait_ended},
};

/// Shorter windows than shipped, so that more of them meet the fault.
const TIMES: Times = Times {
    node: "",
    region: "window_ms = 1000\nbudget_ms = 500\ngrace_ms = 250\noffer_window_ms = 1000\n\
             lease_ms = 3000\nmax_wait_ms = 8000\ndecline_cooldown_ms = 1000\n",
};

/// Regions of each shard.
const OF_A_SHARD: usize = 2;

/// Budget, grace, and half a second for a busy machine.
const SEALED_WITHIN_MS: i64 = 500 + 250 + 500;

/// By how much the load is slower than that of a schedule.
const SLOWER: f64 = 4.0;

#[test]
fn a_dead_shard_is_noticed_by_its_own_regions_alone() {
    let asked = env::var("KHEYA_CLUSTER_FAILOVERS").map(|n| n.parse::<usize>().unwrap());
    let runtime = Runtime::new().unwrap();
    let on = runtime.handle();
    let settings = RedisSettings::default()
        .append_only(AppendOnly::EverySec)
        // as nodes ask for at their start: a shard that is lost takes no other with it
        .set("cluster-require-full-coverage", "no");
    let cluster = Cluster::start(&settings);
    let (_config, file) = config_file(&TIMES);
    let nodes = start_nodes(Path::new(BINARY), vec![cluster.url(); NODES], &file);
    let caller = Caller::new(nodes.iter().map(Node::base_url).collect());

    let mut shards: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for number in 0.. {
        let region = format!("c{number}");
        let primary = cluster.primary_of(&key(&region)).port();
        let shard = shards.entry(primary).or_default();
        if shard.len() < OF_A_SHARD {
            shard.push(region);
        }
        if shards.len() == 3 && shards.values().all(|shard| shard.len() == OF_A_SHARD) {
            break;
        }
    }
    let shards: Vec<Vec<String>> = shards.into_values().collect();
    let regions = shards.concat();
    let mut load = Load::begin(on, &caller, &regions, &[], 11, SLOWER);
    for region in &regions {
        on.block_on(leader_of(&caller, region));
    }
    thread::sleep(Duration::from_secs(3));

    let mut losses: BTreeMap<String, Vec<Loss>> = BTreeMap::new();
    let mut broken = Vec::new();
    for failover in 0..*asked.as_ref().unwrap_or(&1) {
        let struck = &shards[failover % shards.len()];
        let (from_ms, began) = (machine_ms(), Instant::now());
        let takeover = cluster.fail_over(&key(&struck[0]));
        println!(
            "shard of {struck:?}: a replica serves after {:.1?}",
            takeover.took
        );
        let over = Instant::now();
        for region in struck {
            let told = on.block_on(quarantined(&caller, region));
            println!(
                "{region}: quarantined {:.1?} after that, until {told}",
                over.elapsed()
            );
            losses.entry(region.clone()).or_default().push(Loss {
                began,
                over: Instant::now(),
                of_writes: true,
            });
        }
        thread::sleep(Duration::from_secs(3));
        let to_ms = machine_ms();
        for region in shards.iter().filter(|shard| *shard != struck).flatten() {
            let reports = on.block_on(reports(&caller, region));
            broken.extend(not_noticed(region, &reports, from_ms, to_ms));
        }
        if asked.is_ok() {
            cluster.heal();
            for region in struck {
                on.block_on(served_again(&caller, region, to_ms));
            }
        }
    }

    on.block_on(load.end_riders());
    let untouched: Vec<String> = regions
        .iter()
        .filter(|region| asked.is_ok() || !losses.contains_key(*region))
        .cloned()
        .collect();
    broken.extend(on.block_on(wait_ended(&caller, &untouched, Duration::from_secs(12))));
    on.block_on(load.end());
    for world in load
        .worlds
        .iter()
        .filter(|world| untouched.contains(&world.region))
    {
        let losses = losses.get(&world.region).cloned().unwrap_or_default();
        let evidence = on.block_on(Evidence::collect(&caller, world, &losses));
        let findings = check::check(&evidence);
        println!("{}: {:?}", world.region, findings.tally);
        if losses.is_empty() {
            broken.extend(turned_away(&evidence));
        }
        broken.extend(findings.broken);
    }
    broken.extend(on.block_on(check::no_double_claims(&caller)));
    assert!(broken.is_empty(), "{broken:#?}");
}

fn key(region: &str) -> String {
    format!("kheya:{{{region}}}:meta")
}

/// Windows of a region whose shard lives: as many as ever, each in time.
fn not_noticed(region: &str, reports: &[Value], from_ms: i64, to_ms: i64) -> Vec<String> {
    let number = |report: &Value, name: &str| report[name].as_i64().unwrap();
    let meanwhile: Vec<Value> = reports
        .iter()
        .filter(|report| (from_ms..to_ms).contains(&number(report, "closed_at_ms")))
        .cloned()
        .collect();
    let mut broken = check::sealed_in_time(region, &meanwhile, SEALED_WITHIN_MS);
    let (seen, wanted) = (meanwhile.len() as i64, (to_ms - from_ms) / 1_000 - 2);
    if seen < wanted {
        broken.push(format!("{region}: {seen} windows instead of {wanted}"));
    }
    let batches = meanwhile
        .iter()
        .filter(|report| report["source"] == "batch")
        .count();
    println!("{region}: {seen} windows meanwhile, {batches} of them batches");
    broken
}

/// Calls to a region whose shard lived that came to nothing for want of the store.
fn turned_away(evidence: &Evidence) -> Vec<String> {
    let tries = evidence.told.iter().flat_map(|told| &told.tries);
    let turned_away = tries.filter(|tried| {
        let outcome = &tried.outcome;
        outcome.is_not_executed() || outcome.status() == 504
    });
    let told = turned_away.map(|tried| format!("INV-11: {}: {tried:?}", evidence.region));
    told.collect()
}

/// Waits until a region seals a batch again after its quarantine.
async fn served_again(caller: &Caller, region: &str, since_ms: i64) {
    let give_up = Instant::now() + Duration::from_secs(80);
    loop {
        let reports = reports(caller, region).await;
        let again = reports.iter().any(|report| {
            report["source"] == "batch" && report["sealed_at_ms"].as_i64().unwrap() > since_ms
        });
        if again {
            return;
        }
        assert!(Instant::now() < give_up, "{region} is not served again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
