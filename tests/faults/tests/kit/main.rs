//! Each fault of the kit does what it says, on real servers.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

mod clock;
mod cluster;
mod left_behind;
mod pair;
mod proxy;
mod sentinel;
mod server;

use kheya_faults::RedisServer;

/// Increments a counter so often; gives how many were acknowledged.
fn increment(server: &RedisServer, times: usize) -> usize {
    let mut connection = server.try_connect().unwrap();
    let increment = || redis::cmd("INCR").arg("n").query::<i64>(&mut connection);
    let answers = std::iter::repeat_with(increment).take(times);
    answers.flatten().count()
}

/// The counter.
fn counted(server: &RedisServer) -> usize {
    server.call::<Option<usize>>(&["GET", "n"]).unwrap_or(0)
}
