//! A `kheya serve` process under the faults that happen to processes.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

use std::time::Duration;

use kheya_faults::{Fault, Node, NodeSettings, Often, Proxy};
use serde_json::json;

fn node() -> Node {
    NodeSettings::new(env!("CARGO_BIN_EXE_kheya"))
        .node_id("n1")
        .env("KHEYA_LEADER_LEASE_MS", "2000")
        .env("KHEYA_RENEW_DEADLINE_MS", "1000")
        .env("KHEYA_RETRY_MS", "200")
        .argument("--log")
        .argument("kheya=debug")
        .start()
}

fn client() -> reqwest::Client {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(1));
    client.build().unwrap()
}

async fn answers(base_url: &str) -> bool {
    let called = client().get(format!("{base_url}/livez")).send().await;
    called.is_ok_and(|answer| answer.status().is_success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_killed_paused_restarted_and_ended_in_order() {
    let node = node();
    let url = node.base_url();
    assert!(answers(&url).await);
    node.pause();
    assert!(!answers(&url).await, "a stopped node is silent");
    node.resume();
    assert!(answers(&url).await);
    node.kill9();
    assert!(!answers(&url).await);
    assert!(!node.ended().unwrap().success());
    node.restart();
    assert_eq!(node.base_url(), url);
    assert!(answers(&url).await);
    assert!(node.terminate().success(), "{}", node.stderr());
    let starts = node.stderr().matches("kheya: listening on ").count();
    assert_eq!(starts, 2, "the words of both processes are kept");
}

/// The answer to an intake is lost on its way; the same intake again finds the request there.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_was_lost_is_there() {
    let node = node();
    let proxy = Proxy::to_any(node.address(), 1);
    proxy.inject(Fault::LoseAnswer, Often::Next(1));
    let intake = json!({"requests": [{"id": "r1", "pickup": {"lat": 23.75, "lng": 90.4}}]});
    let send = |base_url: String| {
        let url = format!("{base_url}/v1/regions/dhaka/requests");
        client().post(url).json(&intake).send()
    };
    assert!(send(proxy.http_url()).await.is_err());
    assert_eq!(proxy.injected().lost_answers, 1);
    let found = format!("{}/v1/regions/dhaka/requests/r1", node.base_url());
    let found = client().get(found).send().await.unwrap();
    assert_eq!(found.status(), 200);
    assert!(send(proxy.http_url()).await.unwrap().status().is_success());
}
