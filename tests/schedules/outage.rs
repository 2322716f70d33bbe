//! Redis is out: intake is refused at once, health shows it, and everything comes back by itself.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kheya_faults::RedisServer;
use reqwest::Method;
use serde_json::json;
use tokio::runtime::{Handle, Runtime};

use crate::{
    calls::{Caller, Outcome},
    load::Load,
    stage::{AS_SHIPPED, BINARY, Stage},
    watching::{leader_of, quarantined, reports},
};

const REGION: &str = "out";

/// Longest time of an answer while the store is out.
const AT_ONCE: Duration = Duration::from_millis(500);

/// From when on nodes know that it is: three looks, each with its own deadline of 300 ms, and a
/// moment.
const KNOWN_AFTER: Duration = Duration::from_millis(1_800);

/// Longest time until intake works again.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// The ways in which the store goes away; each lasts until its end is called.
#[derive(Debug, Clone, Copy)]
enum Outage {
    /// It stands still, connections open.
    Stopped,
    /// It is gone: connections are refused.
    Dead,
    /// The network swallows everything, of all nodes.
    Swallowed,
    /// The same, of one node alone.
    OneNode,
}

#[test]
fn intake_is_refused_at_once_while_the_store_is_out_and_comes_back_by_itself() {
    let runtime = Runtime::new().unwrap();
    let on = runtime.handle();
    let stage = Stage::start(3, false, &AS_SHIPPED, Path::new(BINARY));
    let caller = Caller::new(stage.urls());
    let mut load = Load::begin(on, &caller, &[REGION.to_owned()], &[], 3, 3.0);
    on.block_on(leader_of(&caller, REGION));
    std::thread::sleep(Duration::from_secs(4));
    let redis = stage.redis.primary();
    for outage in [
        Outage::OneNode,
        Outage::Swallowed,
        Outage::Stopped,
        Outage::Dead,
    ] {
        begin(outage, &stage, &redis);
        let out: Vec<usize> = match outage {
            Outage::OneNode => vec![1],
            _ => vec![0, 1, 2],
        };
        is_told(on, &caller, outage, &out);
        if let Outage::OneNode = outage {
            let taken = on.block_on(intake(&caller, 0, "others"));
            assert_eq!(taken.1.status(), 202, "the others take in: {taken:?}");
        }
        end(on, &caller, outage, &stage, &redis);
        for node in out {
            is_back(on, &caller, outage, node);
        }
    }
    on.block_on(load.end_riders());
    on.block_on(load.end());
    let sealed = on.block_on(reports(&caller, REGION)).len();
    println!("{sealed} windows");
}

fn begin(outage: Outage, stage: &Stage, redis: &RedisServer) {
    match outage {
        Outage::Stopped => redis.pause(),
        Outage::Dead => redis.kill9(),
        Outage::Swallowed => stage
            .proxies
            .iter()
            .for_each(kheya_faults::Proxy::black_hole),
        Outage::OneNode => stage.proxies[1].black_hole(),
    }
}

fn end(on: &Handle, caller: &Caller, outage: Outage, stage: &Stage, redis: &RedisServer) {
    match outage {
        Outage::Stopped => redis.resume(),
        Outage::Dead => redis.restart(),
        Outage::Swallowed | Outage::OneNode => {
            stage
                .proxies
                .iter()
                .for_each(kheya_faults::Proxy::let_through);
        }
    }
    if let Outage::Dead = outage {
        // a server that began anew is quarantined, by its own clock
        on.block_on(quarantined(caller, REGION));
        stage.advance(Duration::from_secs(61));
    }
}

/// One request, to one node, once; with the time that its answer took.
async fn intake(caller: &Caller, node: usize, id: &str) -> (Duration, Outcome) {
    let at = json!({"lat": 23.75, "lng": 90.39});
    let body = json!({"requests": [{"id": id, "pickup": at}]}).to_string();
    let path = format!("{REGION}/requests");
    let started = Instant::now();
    let outcome = caller.send(node, Method::POST, &path, Some(body)).await;
    (started.elapsed(), outcome)
}

fn is_told(on: &Handle, caller: &Caller, outage: Outage, out: &[usize]) {
    let began = Instant::now();
    let (mut slowest, mut slowest_known) = (Duration::ZERO, Duration::ZERO);
    for number in 0.. {
        let since = began.elapsed();
        if since > Duration::from_secs(4) {
            break;
        }
        for &node in out {
            let id = format!("{outage:?}-{node}-{number}");
            let (took, outcome) = on.block_on(intake(caller, node, &id));
            let Outcome::Answered {
                status,
                retry_after,
                ..
            } = outcome
            else {
                panic!("n{node} gives no answer while {outage:?}: {outcome:?}");
            };
            slowest = slowest.max(took);
            assert!(
                took < AT_ONCE,
                "n{node}, {outage:?}: {took:?} for {outcome:?}"
            );
            assert!(retry_after, "n{node}, {outage:?}: {outcome:?}");
            assert!(
                matches!(status, 503 | 504),
                "n{node}, {outage:?}: {outcome:?}"
            );
            if since > KNOWN_AFTER {
                slowest_known = slowest_known.max(took);
                assert_eq!(outcome.code(), "store_unavailable", "n{node}, {outage:?}");
            }
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    println!(
        "{outage:?}: answers within {slowest:.1?}, once it is known within {slowest_known:.1?}"
    );
    for &node in out {
        let metrics = on.block_on(caller.metrics(node)).unwrap();
        let level = metrics
            .lines()
            .find(|line| line.starts_with("kheya_level{") && line.contains(REGION));
        assert!(
            level.is_some_and(|level| level.ends_with(" 3")),
            "n{node}, {outage:?}: {level:?}"
        );
    }
}

fn is_back(on: &Handle, caller: &Caller, outage: Outage, node: usize) {
    let ended = Instant::now();
    for number in 0.. {
        let id = format!("{outage:?}-back-{node}-{number}");
        let (_, outcome) = on.block_on(intake(caller, node, &id));
        if outcome.status() == 202 {
            println!(
                "{outage:?}: n{node} takes in again after {:.1?}",
                ended.elapsed()
            );
            break;
        }
        assert!(
            ended.elapsed() < BACK_WITHIN,
            "n{node}, {outage:?}: {outcome:?}"
        );
        std::thread::sleep(Duration::from_millis(30));
    }
    // reads have connections of their own, which may come back a moment later
    let region = loop {
        let region = on.block_on(caller.get(node, REGION));
        if region.status() == 200 || ended.elapsed() >= BACK_WITHIN {
            break region;
        }
        std::thread::sleep(Duration::from_millis(30));
    };
    assert_eq!(region.status(), 200, "{region:?}");
}
