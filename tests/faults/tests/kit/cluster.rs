use std::{sync::Arc, time::Instant};

use kheya_faults::{Cluster, RedisSettings};

use crate::{counted, increment};

#[test]
fn a_replica_takes_over_the_slots_of_its_lost_primary() {
    let started = Instant::now();
    let cluster = Cluster::start(&RedisSettings::default());
    eprintln!("a cluster starts: {:?}", started.elapsed());
    assert_eq!(cluster.url().matches("127.0.0.1:").count(), 6);
    let primary = cluster.primary_of("n");
    let replica = cluster.replicas_of("n").pop().unwrap();
    assert_eq!(increment(&primary, 10), 10);
    primary.call::<i64>(&["WAIT", "1", "1000"]);

    let killed = cluster.fail_over("n");
    eprintln!("a killed primary is replaced: {:?}", killed.took);
    assert!(Arc::ptr_eq(&killed.from, &primary) && Arc::ptr_eq(&killed.to, &replica));
    assert_eq!(counted(&replica), 10);
    let healing = Instant::now();
    cluster.heal();
    eprintln!("and follows when it is back: {:?}", healing.elapsed());

    let paused = cluster.fail_over_by_pause("n");
    eprintln!("a paused primary is replaced: {:?}", paused.took);
    assert!(Arc::ptr_eq(&paused.to, &primary));
    assert_eq!(increment(&primary, 1), 1);
    cluster.heal();
}
