//! One server.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use redis::Value;
use tokio::time::{Instant, sleep};

use super::kit::{
    Caller, DEADLINE, Proxy, SLACK, Server, add, connect, connect_patiently, connect_with,
    deaf_listener, free_port, get, silent_listener, timed, until,
};
use crate::store::redis::link::{
    CallError, Lane, Link, LinkError, LinkOptions, RedisAddress, Script,
};

fn not_executed<T>(result: &Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::NotExecuted(_)))
}

async fn started(arguments: &[&str]) -> (Server, Link) {
    let server = Server::start(arguments);
    server.answers().await;
    let link = connect(&server.address()).await;
    (server, link)
}

/// For tests that are not about time.
async fn started_patiently(arguments: &[&str]) -> (Server, Link) {
    let server = Server::start(arguments);
    server.answers().await;
    let link = connect_patiently(&server.address()).await;
    (server, link)
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_come_back_as_they_were_asked_for() {
    let (server, link) = started_patiently(&[]).await;
    assert_eq!(add(&link, "a").await, Ok(1));
    assert_eq!(get(&link, "a").await, Ok(Value::BulkString(b"1".into())));
    let mut reads = redis::pipe();
    reads.atomic().cmd("GET").arg("a").cmd("TTL").arg("a");
    let values = vec![Value::BulkString(b"1".into()), Value::Int(-1)];
    assert_eq!(link.read(Lane::Read, "a", &reads).await, Ok(values));

    // a script that was forgotten is loaded again, and counts once
    server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(add(&link, "a").await, Ok(2));
    assert_eq!(link.counters().script_loads, 2);

    let wrong = Script::new("redis.call('SET', KEYS[1], 1); redis.call('LPUSH', KEYS[1], 1)");
    let wrong = link.script(Lane::Work, &wrong, &["b"], &[]).await;
    assert!(matches!(&wrong, Err(CallError::Refused(text)) if text.contains("WRONGTYPE")));
    let scattered = link
        .script(Lane::Work, &Script::new("return 1"), &["b", "c"], &[])
        .await;
    assert!(matches!(scattered, Err(CallError::Refused(_))));
    let names = server.cli(&["CLIENT", "LIST"]);
    assert!(
        names.contains("name=kheya-work") && names.contains("name=kheya-read"),
        "{names}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_timed_out_is_unknown_for_it_may_be_executed() {
    let (server, link) = started(&[]).await;
    add(&link, "a").await.unwrap();
    server.signal("-STOP");
    let (result, time) = timed(add(&link, "a")).await;
    assert!(matches!(result, Err(CallError::Unknown(_))), "{result:?}");
    assert!(time >= DEADLINE);
    server.signal("-CONT");
    until("the write is found", async || {
        server.cli(&["GET", "a"]) == "2"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_outlasts_its_deadline_while_the_server_hangs_and_it_is_used_again_soon() {
    let (server, link) = started(&[]).await;
    add(&link, "a").await.unwrap();
    server.signal("-STOP");
    let burst = (0..500).map(|_| {
        let link = link.clone();
        tokio::spawn(async move { timed(add(&link, "a")).await })
    });
    let mut longest_of_burst = Duration::ZERO;
    for call in burst.collect::<Vec<_>>() {
        let (result, time) = call.await.unwrap();
        assert!(matches!(result, Err(CallError::Unknown(_))), "{result:?}");
        longest_of_burst = longest_of_burst.max(time);
    }
    println!("hanging server: longest of 500 calls at once {longest_of_burst:?}");
    let mut longest = Duration::ZERO;
    let mut unknown = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        let (result, time) = timed(add(&link, "a")).await;
        longest = longest.max(time);
        unknown += u32::from(matches!(result, Err(CallError::Unknown(_))));
        assert!(result.is_err());
        sleep(Duration::from_millis(5)).await;
    }
    // the connection was given up: what follows is known not to be executed
    assert!(unknown <= 6, "{unknown}");
    server.signal("-CONT");
    let back = until("calls succeed", async || {
        timed(add(&link, "a")).await.0.is_ok()
    })
    .await;
    println!("hanging server: longest call {longest:?}, {unknown} unknown, back after {back:?}");
    assert!(back < Duration::from_millis(600) + SLACK, "{back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_a_dead_server_fail_at_once_and_succeed_soon_after_its_restart() {
    let (mut server, link) = started(&[]).await;
    add(&link, "a").await.unwrap();
    let mut recoveries = Vec::new();
    for _ in 0..3 {
        server.kill();
        sleep(Duration::from_millis(500)).await;
        let (result, time) = timed(add(&link, "a")).await;
        assert!(not_executed(&result), "{result:?}");
        assert!(time < DEADLINE / 3, "{time:?}");
        sleep(Duration::from_millis(1500)).await;
        server.restart();
        server.answers().await;
        recoveries.push(until("calls succeed", async || add(&link, "a").await.is_ok()).await);
    }
    println!("recovery after a restart: {recoveries:?}");
    assert!(
        recoveries
            .iter()
            .all(|time| *time < Duration::from_millis(600) + SLACK),
        "{recoveries:?}"
    );
    assert_eq!(server.cli(&["GET", "a"]), "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_out_a_quick_restart() {
    let (mut server, link) = started(&[]).await;
    add(&link, "a").await.unwrap();
    let caller = Caller::begin(&link, "a".into());
    sleep(Duration::from_millis(100)).await;
    server.restart();
    sleep(Duration::from_millis(900)).await;
    let called = caller.end().await;
    println!("quick restart: {called:?}");
    assert!(called.failures < 10 && called.successes > 20, "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_given_up() {
    let (server, _) = started(&[]).await;
    let proxy = Proxy::to(server.port).await;
    let link = connect(&format!("redis://127.0.0.1:{}", proxy.port)).await;
    // busy, and idle until the probes find it
    for pause in [Duration::ZERO, Duration::from_millis(3_500)] {
        add(&link, "a").await.unwrap();
        proxy.cut_silently();
        sleep(pause).await;
        let start = Instant::now();
        let back = until("calls succeed", async || {
            timed(add(&link, "a")).await.0.is_ok()
        })
        .await;
        println!("half-open, {pause:?} later: back after {back:?}");
        let most = if pause.is_zero() {
            3 * DEADLINE + SLACK
        } else {
            SLACK
        };
        assert!(start.elapsed() < most, "{back:?}");
    }
}

/// Reads until it is refused; gives when it was last answered.
async fn last_read(link: &Link) -> Duration {
    let start = Instant::now();
    let mut last = Duration::ZERO;
    while timed(get(link, "a")).await.0.is_ok() {
        last = start.elapsed();
        sleep(Duration::from_millis(1)).await;
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_server_is_not_read_from_nor_written_to() {
    let (primary, _) = started(&[]).await;
    let (server, link) = started(&[]).await;
    add(&link, "a").await.unwrap();
    get(&link, "a").await.unwrap();
    server.cli(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    let (result, _) = timed(add(&link, "a")).await;
    assert!(not_executed(&result), "{result:?}");
    // the readers hear of it
    let unread = last_read(&link).await;
    assert!(unread < DEADLINE, "{unread:?}");
    let (result, _) = timed(add(&link, "a")).await;
    assert!(matches!(&result, Err(CallError::NotExecuted(text)) if text.contains("replica")));
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    let back = until("calls succeed", async || add(&link, "a").await.is_ok()).await;
    println!("demoted: reads stop after {unread:?}; promoted: back after {back:?}");
    assert!(back < Duration::from_millis(600) + SLACK);

    // without a write, the probe finds it
    server.cli(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    let unread = last_read(&link).await;
    assert!(unread < Duration::from_millis(1_300) + SLACK, "{unread:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_do_not_wait_for_one_another_and_are_bounded() {
    let server = Server::start(&[]);
    server.answers().await;
    let options = LinkOptions {
        read_connections: 1,
        max_in_flight: 3,
        ..LinkOptions::default()
    };
    let link = connect_with(&server.address(), options).await;
    // blocks its connection, as a slow read would
    let slow = async {
        let mut command = redis::cmd("BLPOP");
        command.arg("nothing").arg("0.2");
        link.command(Lane::Read, "nothing", &command).await
    };
    let others = async {
        sleep(Duration::from_millis(50)).await;
        assert_eq!(link.in_flight(Lane::Read), 3);
        let (turned_away, time) = timed(get(&link, "a")).await;
        assert!(not_executed(&turned_away), "{turned_away:?}");
        assert!(time < DEADLINE / 3, "{time:?}");
        assert_eq!(link.counters().turned_away, 1);
        for lane in [Lane::Lease, Lane::Work] {
            let (result, time) = timed(link.command(lane, "a", &redis::cmd("PING"))).await;
            assert_eq!(result, Ok(Value::SimpleString("PONG".into())));
            assert!(time < DEADLINE / 3, "{time:?}");
        }
    };
    let behind_it = async {
        sleep(Duration::from_millis(10)).await;
        let waiting = timed(get(&link, "a")).await;
        assert!(
            waiting.0.is_ok() && waiting.1 > Duration::from_millis(100),
            "{waiting:?}"
        );
    };
    let too = async {
        sleep(Duration::from_millis(10)).await;
        assert!(timed(get(&link, "b")).await.0.is_ok());
    };
    let (popped, (), (), ()) = tokio::join!(slow, behind_it, too, others);
    assert_eq!(popped, Ok(Value::Nil));
    // whoever knows that a call is slow says so
    let patient = link.with_deadline(Duration::from_secs(2));
    let mut slow = redis::cmd("BLPOP");
    slow.arg("nothing").arg("0.5");
    let popped = patient.command(Lane::Read, "nothing", &slow).await;
    assert_eq!(popped, Ok(Value::Nil));
    assert_eq!(link.in_flight(Lane::Read), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_share_the_connections() {
    let (server, link) = started_patiently(&[]).await;
    let calls = (0..1_000).map(|_| {
        let link = link.clone();
        tokio::spawn(async move { add(&link, "a").await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(server.cli(&["GET", "a"]), "1000");
    assert!(link.counters().connects <= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_usable_server_says_why_and_soon() {
    let password = "s3cret-p4ss";
    let locked = Server::start(&["--requirepass", "other"]);
    locked.answers().await;
    let silent = silent_listener().await;
    let (deaf, _held) = deaf_listener().await;
    let replica = Server::start(&["--replicaof", "127.0.0.1", &locked.port.to_string()]);
    replica.answers().await;
    for (address, part) in [
        (format!("redis://127.0.0.1:{}", free_port()), "refused"),
        (format!("redis://127.0.0.1:{silent}"), "no answer"),
        (format!("redis://127.0.0.1:{deaf}"), "no answer"),
        (locked.address(), "NOAUTH"),
        (
            format!("redis://:{password}@127.0.0.1:{}", locked.port),
            "WRONGPASS",
        ),
        (replica.address(), "replica"),
        (
            format!("redis+cluster://127.0.0.1:{}", replica.port),
            "cluster support disabled",
        ),
        (
            format!("redis+sentinel://127.0.0.1:{}/main", replica.port),
            "unknown command",
        ),
    ] {
        let parsed = RedisAddress::parse(&address).unwrap();
        let start = Instant::now();
        let error = Link::connect(&parsed, LinkOptions::default())
            .await
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(
            matches!(error, LinkError::Unreachable { .. }) && text.contains(part),
            "{text}"
        );
        assert!(!text.contains(password), "{text}");
        assert!(
            start.elapsed() < Duration::from_millis(500) + SLACK,
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_its_data_executes_nothing() {
    // it loads 1,024 keys in a tenth of a second, then looks who is calling
    let mut server = Server::start(&["--key-load-delay", "100"]);
    server.answers().await;
    let link = connect(&server.address()).await;
    let fill = "for i = 1, 8000 do redis.call('SET', i, i) end";
    server.cli(&["EVAL", fill, "0"]);
    assert_eq!(add(&link, "a").await, Ok(1));
    server.restart();
    let loading = AtomicU32::new(0);
    until("the data is loaded", async || match add(&link, "a").await {
        Err(CallError::NotExecuted(text)) => {
            loading.fetch_add(u32::from(text.contains("LOADING")), Ordering::Relaxed);
            false
        }
        result => result.is_ok(),
    })
    .await;
    assert!(loading.into_inner() > 0);
    assert_eq!(server.cli(&["GET", "a"]), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_executes_nothing_and_is_no_defect() {
    let (server, link) = started_patiently(&["--maxmemory-policy", "noeviction"]).await;
    add(&link, "a").await.unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let result = add(&link, "a").await;
    assert!(not_executed(&result), "{result:?}");
    // a script that has written already is let finish: so the error proves what it is taken for
    let rewrite = "redis.call('DEL', KEYS[1]) return redis.call('INCRBY', KEYS[1], 5)";
    let rewrite = Script::new(rewrite);
    let rewritten = link.script(Lane::Work, &rewrite, &["b"], &[]).await;
    assert_eq!(rewritten, Ok(Value::Int(5)));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(add(&link, "a").await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_server_refuses_eviction_and_warns_of_losses() {
    let (server, link) = started_patiently(&["--repl-backlog-ttl", "0"]).await;
    let report = link.check_server().await.unwrap();
    assert_eq!(
        (report.versions.len(), report.warnings.len()),
        (1, 0),
        "{report:?}"
    );
    server.cli(&["CONFIG", "SET", "repl-backlog-ttl", "3600"]);
    server.cli(&["CONFIG", "SET", "appendonly", "no"]);
    assert_eq!(link.check_server().await.unwrap().warnings.len(), 2);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let error = link.check_server().await.unwrap_err();
    assert!(matches!(error, LinkError::Unfit(_)), "{error}");

    // a user that may do no more than it must
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let rules = "on >pw ~a -@all +hello +auth +info +get +evalsha +script|load +incrby";
    let rules: Vec<&str> = ["ACL", "SETUSER", "kheya"]
        .into_iter()
        .chain(rules.split(' '))
        .collect();
    assert_eq!(server.cli(&rules), "OK");
    let link = connect_patiently(&format!("redis://kheya:pw@127.0.0.1:{}", server.port)).await;
    let report = link.check_server().await.unwrap();
    assert_eq!(report.warnings.len(), 2, "{report:?}");
    assert_eq!(add(&link, "a").await, Ok(1));
    let denied = get(&link, "b").await;
    assert!(not_executed(&denied), "{denied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_a_server_of_the_own_authority_only() {
    let mut server = Server::start(&[]);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).unwrap();
    let (cert_file, key_file) = (server.dir().join("cert.pem"), server.dir().join("key.pem"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    let tls_port = free_port();
    let (cert, key) = (cert_file.to_str().unwrap(), key_file.to_str().unwrap());
    server.restart_with(&[
        ["--tls-port", &tls_port.to_string()],
        ["--tls-cert-file", cert],
        ["--tls-key-file", key],
        ["--tls-ca-cert-file", cert],
    ]);
    server.answers().await;
    let address = format!("rediss://localhost:{tls_port}");
    // the server wants a client certificate too
    let link = connect_patiently(&format!("{address}?ca={cert}&cert={cert}&key={key}")).await;
    assert_eq!(add(&link, "a").await, Ok(1));
    for bad in [address.clone(), format!("{address}?ca={cert}")] {
        let parsed = RedisAddress::parse(&bad).unwrap();
        let error = Link::connect(&parsed, LinkOptions::default()).await;
        assert!(error.is_err(), "{bad}");
    }
}
