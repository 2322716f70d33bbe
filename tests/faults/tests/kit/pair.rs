use std::time::Instant;

use kheya_faults::{RedisPair, RedisSettings};

use crate::{counted, increment};

#[test]
fn a_failover_loses_what_was_acknowledged_since_the_replica_stopped() {
    let started = Instant::now();
    let pair = RedisPair::start(&RedisSettings::default());
    eprintln!("a pair starts: {:?}", started.elapsed());
    let url = pair.url();
    for round in 1..=3 {
        let before = counted(&pair.primary());
        let old = pair.primary();
        let old_id = old.info("replication", "master_replid");
        assert_eq!(increment(&old, 1), 1);
        let failing = Instant::now();
        let (acknowledged, lost) = pair.lose_tail(|| increment(&old, 49));
        eprintln!("failover {round}: {:?}, {lost:?}", failing.elapsed());
        assert_eq!(acknowledged, 49);
        assert!(lost.bytes > 49, "{lost:?}");
        assert_eq!(counted(&pair.primary()), before + 1, "1 of 50 is left");
        assert_eq!(
            (pair.url(), pair.primary().url()),
            (url.clone(), url.clone())
        );
        assert_ne!(pair.primary().info("replication", "master_replid"), old_id);
        pair.heal();
        assert_eq!(counted(&pair.replica()), before + 1);
    }
}

#[test]
fn a_failover_of_a_replica_that_follows_loses_nothing() {
    let pair = RedisPair::start(&RedisSettings::default());
    assert_eq!(increment(&pair.primary(), 50), 50);
    pair.replica().wait_caught_up(&pair.primary());
    assert_eq!(pair.fail_over().bytes, 0);
    assert_eq!(counted(&pair.primary()), 50);
    assert_eq!(increment(&pair.primary(), 1), 1);
}
