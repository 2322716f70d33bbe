//! Leadership: one at a time, epochs that rise, leases that end.

use super::{World, declare};
use crate::{
    domain::{DurationMs, NodeId, Nonce},
    protocol::{AcquireLeadership, LeadershipRefusal, Leads, RenewLeadership, ResignLeadership},
};

declare!(
    one_node_leads_at_a_time,
    a_renewed_lease_ends_later_and_a_lost_one_stays_lost,
    a_resigned_leadership_is_free_at_once,
);

async fn acquire(world: &World<'_>, node: &str, nonce: u64) -> Result<Leads, LeadershipRefusal> {
    let ask = AcquireLeadership {
        node: NodeId::new(node).unwrap(),
        nonce: Nonce::new(nonce),
        lease_ms: DurationMs::new(6_000),
    };
    world.store().acquire(&world.region, ask).await.unwrap()
}

async fn renew(world: &World<'_>, leads: Leads, nonce: u64) -> Result<Leads, LeadershipRefusal> {
    let renewal = RenewLeadership {
        epoch: leads.epoch,
        nonce: Nonce::new(nonce),
        lease_ms: DurationMs::new(6_000),
    };
    world.store().renew(&world.region, renewal).await.unwrap()
}

async fn one_node_leads_at_a_time(world: &World<'_>) {
    world.begin().await;
    let first = acquire(world, "a", 1).await.unwrap();
    assert_eq!(
        acquire(world, "a", 1).await,
        Ok(first),
        "a repeat keeps its epoch"
    );
    let refused = acquire(world, "b", 2).await;
    assert!(
        matches!(refused, Err(LeadershipRefusal::Held { .. })),
        "{refused:?}"
    );
    assert!(
        acquire(world, "a", 3).await.is_err(),
        "another life of the same node is a rival"
    );
    world.wait(6_000).await;
    let second = acquire(world, "b", 2).await.unwrap();
    assert!(second.epoch > first.epoch);
    let overview = world.store().overview(&world.region).await.unwrap();
    assert_eq!(overview.leader.unwrap().node.as_str(), "b");
    assert_eq!(overview.epoch, second.epoch);
}

async fn a_renewed_lease_ends_later_and_a_lost_one_stays_lost(world: &World<'_>) {
    world.begin().await;
    let first = acquire(world, "a", 1).await.unwrap();
    world.wait(4_000).await;
    let renewed = renew(world, first, 1).await.unwrap();
    assert_eq!(renewed.epoch, first.epoch);
    assert_eq!(renewed.until_ms, first.until_ms + DurationMs::new(4_000));
    assert_eq!(renew(world, first, 2).await, Err(LeadershipRefusal::Lost));
    world.wait(6_000).await;
    assert_eq!(renew(world, first, 1).await, Err(LeadershipRefusal::Lost));
    let overview = world.store().overview(&world.region).await.unwrap();
    assert_eq!(overview.leader, None);
}

async fn a_resigned_leadership_is_free_at_once(world: &World<'_>) {
    world.begin().await;
    let first = acquire(world, "a", 1).await.unwrap();
    let resign = |leads: Leads, nonce| ResignLeadership {
        epoch: leads.epoch,
        nonce: Nonce::new(nonce),
    };
    let store = world.store();
    let stranger = store.resign(&world.region, resign(first, 2)).await.unwrap();
    assert_eq!(stranger, Err(LeadershipRefusal::Lost));
    assert_eq!(
        store.resign(&world.region, resign(first, 1)).await.unwrap(),
        Ok(())
    );
    assert_eq!(
        store.resign(&world.region, resign(first, 1)).await.unwrap(),
        Ok(())
    );
    let second = acquire(world, "b", 2).await.unwrap();
    assert!(second.epoch > first.epoch);
    let late = store.resign(&world.region, resign(first, 1)).await.unwrap();
    assert_eq!(late, Err(LeadershipRefusal::Lost));
}
