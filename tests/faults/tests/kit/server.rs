use std::{
    thread,
    time::{Duration, Instant},
};

use kheya_faults::{AppendOnly, RedisServer, RedisSettings};

use crate::{counted, increment};

#[test]
fn a_killed_server_comes_back_with_its_data_on_its_port() {
    let started = Instant::now();
    let server = RedisSettings::default()
        .append_only(AppendOnly::EverySec)
        .start();
    eprintln!("a server starts: {:?}", started.elapsed());
    assert_eq!(increment(&server, 100), 100);
    let url = server.url();
    server.kill9();
    assert!(!server.is_serving() && server.try_connect().is_err());
    let restarted = Instant::now();
    server.restart();
    eprintln!("and comes back: {:?}", restarted.elapsed());
    assert_eq!((server.url(), counted(&server)), (url, 100));
    server.restart_empty();
    assert_eq!(counted(&server), 0);
}

#[test]
fn a_server_without_a_log_comes_back_empty() {
    let server = RedisServer::start();
    assert_eq!(increment(&server, 5), 5);
    server.restart();
    assert_eq!(counted(&server), 0);
    assert_eq!(
        server
            .call::<(String, String)>(&["CONFIG", "GET", "maxmemory-policy"])
            .1,
        "noeviction"
    );
    server.call::<()>(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
}

#[test]
fn a_power_cut_loses_the_end_of_the_log() {
    let server = RedisSettings::default()
        .append_only(AppendOnly::EverySec)
        .start();
    assert_eq!(increment(&server, 100), 100);
    assert_eq!(server.lose_power(900), 900);
    let left = counted(&server);
    assert!(
        left > 0 && left < 100,
        "{left} of 100 acknowledged are left"
    );
    server.kill9();
    let whole = server.truncate_aof(1 << 40);
    server.restart();
    assert!(whole > 900);
    assert_eq!(counted(&server), 0);
}

#[test]
fn a_paused_server_applies_later_what_its_client_gave_up() {
    let server = RedisServer::start();
    let mut connection = server.try_connect().unwrap();
    connection
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    server.pause();
    assert!(server.is_paused() && !server.is_serving());
    let answer: redis::RedisResult<i64> = redis::cmd("INCR").arg("n").query(&mut connection);
    assert!(answer.unwrap_err().is_timeout());
    drop(connection);
    server.resume();
    assert_eq!(counted(&server), 1);
}

#[test]
fn servers_start_side_by_side() {
    thread::scope(|scope| {
        let start = || {
            let server = RedisServer::start();
            assert_eq!(increment(&server, 3), 3);
            server
        };
        let starting: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        let servers: Vec<_> = starting.into_iter().map(|s| s.join().unwrap()).collect();
        assert!(servers.iter().all(|server| counted(server) == 3));
    });
}
