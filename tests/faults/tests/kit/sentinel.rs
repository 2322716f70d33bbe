use std::{sync::Arc, time::Instant};

use kheya_faults::{RedisSettings, SentinelSet};

use crate::{counted, increment};

#[test]
fn a_lost_primary_is_replaced() {
    let started = Instant::now();
    let set = SentinelSet::start(2, &RedisSettings::default());
    eprintln!("a Sentinel set starts: {:?}", started.elapsed());
    assert_eq!(set.url().matches("127.0.0.1:").count(), 3);
    let first = set.primary();
    assert_eq!(increment(&first, 10), 10);
    first.call::<i64>(&["WAIT", "2", "1000"]);

    let killed = set.fail_over();
    eprintln!("a killed primary is replaced: {:?}", killed.took);
    assert!(Arc::ptr_eq(&killed.from, &first));
    assert_eq!(counted(&set.primary()), 10);
    let healing = Instant::now();
    set.heal();
    eprintln!("and follows when it is back: {:?}", healing.elapsed());
    assert!(!first.is_primary());

    let paused = set.fail_over_by_pause();
    eprintln!("a paused primary is replaced: {:?}", paused.took);
    assert!(Arc::ptr_eq(&paused.from, &killed.to));
    assert_eq!(increment(&set.primary(), 1), 1);
    set.heal();
    assert!(!paused.from.is_primary());
}
