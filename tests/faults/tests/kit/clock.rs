use std::time::{Duration, Instant, SystemTime};

use kheya_faults::{AppendOnly, RedisServer, RedisSettings};

const MINUTE: Duration = Duration::from_mins(1);

fn with_moved_clock() -> RedisServer {
    RedisSettings::default()
        .append_only(AppendOnly::EverySec)
        .moved_clock()
        .start()
}

/// How far the server's clock is ahead of ours.
fn ahead_us(told_us: i64) -> i64 {
    told_us - SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64
}

fn time_in_lua(server: &RedisServer) -> i64 {
    let script =
        "local t = redis.call('TIME'); return string.format('%.0f', t[1] * 1000000 + t[2])";
    server.call(&["EVAL", script, "0"])
}

fn is_near(us: i64, expected: i64) -> bool {
    (us - expected).abs() < 1_000_000
}

#[test]
fn the_clock_moves_for_commands_and_scripts_and_survives_a_restart() {
    let server = with_moved_clock();
    assert!(is_near(ahead_us(server.time_us()), 0));
    for offset_us in [3_600_000_000, -7_200_000_001, 999_999, -1, 0] {
        server.set_offset_us(offset_us);
        assert!(is_near(ahead_us(server.time_us()), offset_us));
        assert!(is_near(ahead_us(time_in_lua(&server)), offset_us));
    }
    server.advance(MINUTE);
    server.advance(MINUTE);
    server.restart();
    assert_eq!(server.offset_us(), 120_000_000);
    assert!(is_near(ahead_us(server.time_us()), 120_000_000));
}

#[test]
fn keys_expire_by_the_moved_clock() {
    let server = with_moved_clock();
    server.call::<()>(&["SET", "lock", "first", "NX", "PX", "30000"]);
    server.advance(MINUTE);
    let won: Option<String> = server.call(&["SET", "lock", "second", "NX", "PX", "30000"]);
    assert_eq!(won.as_deref(), Some("OK"), "the first lock was over");
    server.set_offset_us(-MINUTE.as_micros().cast_signed() as i64);
    let left: i64 = server.call(&["PTTL", "lock"]);
    assert!(
        left > 140_000,
        "a clock that is set back keeps it: {left} ms"
    );
}

#[test]
fn every_move_is_seen_by_the_next_command() {
    let server = with_moved_clock();
    let mut connection = server.try_connect().unwrap();
    let started = Instant::now();
    let moves = 2_000;
    let mut last = 0;
    for _ in 0..moves {
        server.advance(Duration::from_secs(10));
        let (seconds, _): (i64, i64) = redis::cmd("TIME").query(&mut connection).unwrap();
        assert!(seconds >= last + 10);
        last = seconds;
    }
    eprintln!(
        "{moves} moves of the clock, each read: {:?}",
        started.elapsed()
    );
}
