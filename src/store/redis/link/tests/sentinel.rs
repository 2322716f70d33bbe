//! Sentinel.

use std::{path::Path, time::Duration};

use tokio::time::{Instant, sleep};

use super::kit::{Caller, SLACK, Server, add, cli, connect, free_port, until};
use crate::store::redis::link::CallError;

/// A sentinel: a server with a file that it writes itself.
fn sentinel(primary: u16, dir: &Path) -> Server {
    let port = free_port();
    let file = dir.join(format!("{port}.conf"));
    let config = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {primary} 2\n\
         sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
    );
    std::fs::write(&file, config).unwrap();
    Server::of_file(port, &file)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_that_the_sentinels_promote_is_found() {
    let mut primary = Server::start(&[]);
    primary.answers().await;
    let of = primary.port.to_string();
    let replica = Server::start(&["--replicaof", "127.0.0.1", &of]);
    let dir = tempfile::TempDir::new().unwrap();
    let sentinels: Vec<_> = (0..3).map(|_| sentinel(primary.port, dir.path())).collect();
    let main = |what: &str| cli(sentinels[0].port, &["SENTINEL", what, "main"]);
    until("the sentinels know one another", async || {
        let info = cli(sentinels[0].port, &["INFO", "sentinel"]);
        info.contains("slaves=1,sentinels=3")
            && replica
                .cli(&["INFO", "replication"])
                .contains("master_link_status:up")
    })
    .await;
    let hosts = sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port));
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let link = connect(&format!("redis+sentinel://{hosts}/main")).await;
    add(&link, "a").await.unwrap();

    let caller = Caller::begin(&link, "a".into());
    sleep(Duration::from_millis(200)).await;
    let start = Instant::now();
    primary.kill();
    let promoted = async || main("GET-MASTER-ADDR-BY-NAME").contains(&replica.port.to_string());
    until("the replica is promoted", promoted).await;
    let promoted = start.elapsed();
    until("calls succeed", async || add(&link, "a").await.is_ok()).await;
    let back = start.elapsed();
    sleep(Duration::from_millis(300)).await;
    let called = caller.end().await;
    println!("failover: promoted after {promoted:?}, back after {back:?}, {called:?}");
    assert!(called.failures > 0, "nothing was injured");
    assert!(
        back < promoted + Duration::from_millis(700) + SLACK,
        "{back:?}"
    );

    // the old primary comes back, and is a replica before long
    primary.restart();
    until("the old primary is demoted", async || {
        primary.cli(&["INFO", "replication"]).contains("role:slave")
    })
    .await;
    for _ in 0..50 {
        assert!(!matches!(add(&link, "a").await, Err(CallError::Refused(_))));
    }
    assert!(add(&link, "a").await.is_ok());
}
