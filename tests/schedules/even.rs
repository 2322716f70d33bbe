//! Leaderships are spread evenly, and no region starves.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    calls::Caller,
    check,
    stage::{BINARY, NODES, Stage, Times, machine_ms},
    watching::{reports, shares, wait_even},
};

const REGIONS: usize = 100;

/// The shipped leadership, on shorter windows.
const TIMES: Times = Times {
    node: "",
    region: "window_ms = 1000\nmax_wait_ms = 3000\n",
};
const LEASE_MS: u64 = 6_000;
const WINDOW_MS: u64 = 1_000;

/// Budget, grace, and half a second for a busy machine.
const SEALED_WITHIN_MS: i64 = 500 + 250 + 500;

/// A machine with two cores starts three nodes and a hundred regions at once.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn three_nodes_lead_a_hundred_regions_evenly_and_two_go_on() {
    let runtime = Runtime::new().unwrap();
    let on = runtime.handle();
    let stage = Stage::start(2, false, &TIMES, Path::new(BINARY));
    let caller = Caller::new(stage.urls());
    let regions: Vec<String> = (0..REGIONS).map(|region| format!("e{region:02}")).collect();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let riding = regions
        .iter()
        .map(|region| on.spawn(ride(caller.clone(), region.clone(), stopped.clone())));
    let riding: Vec<_> = riding.collect();

    let all: Vec<usize> = (0..NODES).collect();
    let leaders = on.block_on(wait_even(&caller, &regions, &all, SETTLES_WITHIN));
    println!("shares: {:?}", shares(&leaders, NODES));
    let settled_ms = machine_ms();
    std::thread::sleep(Duration::from_secs(4));

    let dead = leaders[&regions[0]];
    stage.nodes[dead].kill9();
    let died = Instant::now();
    let left: Vec<usize> = all.into_iter().filter(|node| *node != dead).collect();
    let patience = Duration::from_millis(LEASE_MS + WINDOW_MS);
    let leaders = on.block_on(wait_even(&caller, &regions, &left, patience));
    println!(
        "shares {:.1?} after a death: {:?}",
        died.elapsed(),
        shares(&leaders, NODES)
    );
    std::thread::sleep(Duration::from_secs(3));
    let ended_ms = machine_ms();
    stop.send_replace(true);
    for rides in riding {
        on.block_on(rides).unwrap();
    }

    let mut broken = Vec::new();
    let mut sealed = Vec::new();
    let wanted = (ended_ms - settled_ms) as usize / WINDOW_MS as usize / 2;
    for region in &regions {
        let reports = on.block_on(reports(&caller, region));
        let since =
            |report: &&serde_json::Value| report["opened_at_ms"].as_i64().unwrap() >= settled_ms;
        let seen: Vec<_> = reports.iter().filter(since).cloned().collect();
        broken.extend(check::sealed_in_time(region, &seen, SEALED_WITHIN_MS));
        if seen.len() < wanted {
            broken.push(format!(
                "{region} starves: {} windows of {wanted}",
                seen.len()
            ));
        }
        sealed.push(seen.len());
    }
    sealed.sort_unstable();
    println!("windows a region: {} to {}", sealed[0], sealed[REGIONS - 1]);
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Riders of one region, one a window or more, with two cars that never answer.
async fn ride(caller: Caller, region: String, stopped: tokio::sync::watch::Receiver<bool>) {
    let at = json!({"lat": 23.75, "lng": 90.39});
    for number in 0.. {
        if *stopped.borrow() {
            return;
        }
        let cars = ["car1", "car2"]
            .map(|car| json!({"id": car, "lat": 23.76, "lng": 90.39, "at_ms": machine_ms()}));
        let body = json!({ "drivers": cars }).to_string();
        let path = format!("{region}/drivers");
        let node = caller.any_node();
        caller.send(node, Method::POST, &path, Some(body)).await;
        let body = json!({"requests": [{"id": format!("r{number}"), "pickup": at}]}).to_string();
        let path = format!("{region}/requests");
        let node = caller.any_node();
        caller.send(node, Method::POST, &path, Some(body)).await;
        tokio::time::sleep(Duration::from_millis(WINDOW_MS * 7 / 10)).await;
    }
}
