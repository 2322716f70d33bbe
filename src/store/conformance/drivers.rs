//! Presence: pings, their order, removing a driver, its record's end.

use super::{
    World, declare,
    world::{driver, later, place},
};
use crate::{
    domain::{DurationMs, Finite},
    protocol::{
        DriverState, DriverStatus, EntryCode, Patch, Ping, RemoveDriver, RemoveDriverRefusal,
    },
};

declare!(
    the_newest_ping_wins,
    a_ping_from_the_future_costs_the_others_nothing,
    only_a_crossing_moves_a_driver,
    left_out_fields_stay_and_null_clears,
    an_old_ping_does_not_bring_back_a_removed_driver,
    a_held_driver_cannot_be_removed,
    a_silent_driver_is_forgotten_and_a_held_one_is_not,
);

async fn the_newest_ping_wins(world: &World<'_>) {
    let now = world.begin().await;
    let ping = |at, north| Ping::at(driver("d"), place(north), later(now, at));
    let answer = world
        .ping_all(vec![ping(0, 1), ping(-1, 2), ping(0, 3), ping(1, 4)])
        .await;
    assert_eq!((answer.accepted, answer.stale), (2, 2));
    let view = world
        .store()
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.presence.unwrap().place, place(4));
}

async fn a_ping_from_the_future_costs_the_others_nothing(world: &World<'_>) {
    let now = world.begin().await;
    let ping = |id, at| Ping::at(driver(id), place(1), later(now, at));
    let answer = world
        .ping_all(vec![ping("a", 5_001), ping("b", 5_000), ping("c", 0)])
        .await;
    assert_eq!((answer.accepted, answer.stale), (2, 0));
    let rejected = answer.rejected.first().unwrap();
    assert_eq!(
        (rejected.index, rejected.code),
        (0, EntryCode::AtMsInFuture)
    );
    let view = world
        .store()
        .driver(&world.region, &driver("b"))
        .await
        .unwrap()
        .unwrap();
    let presence = view.presence.unwrap();
    assert_eq!(
        presence.seen_ms(),
        presence.received_ms,
        "a fast clock gains nothing"
    );
}

async fn only_a_crossing_moves_a_driver(world: &World<'_>) {
    let now = world.begin().await;
    let mut moved = Vec::new();
    for (n, north) in [0, 0, 1, 50, 50].into_iter().enumerate() {
        let ping = Ping::at(driver("d"), place(north), later(now, n as i64));
        moved.push(world.ping_all(vec![ping]).await.moved);
    }
    // new, still, 111 m inside the cell, 5.5 km away, still
    assert_eq!(moved, [1, 0, 0, 1, 0]);
}

async fn left_out_fields_stay_and_null_clears(world: &World<'_>) {
    let now = world.begin().await;
    let mut ping = Ping::at(driver("d"), place(0), now);
    ping.heading_deg = Patch::Set(Finite::or_zero(90.0));
    ping.speed_kmh = Patch::Set(Finite::or_zero(30.0));
    ping.status = DriverStatus::Busy;
    world.ping_all(vec![ping]).await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::Busy));
    let mut ping = Ping::at(driver("d"), place(0), later(now, 1));
    ping.speed_kmh = Patch::Clear;
    world.ping_all(vec![ping]).await;
    let view = world
        .store()
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    let presence = view.presence.unwrap();
    assert_eq!(presence.heading_deg, Some(Finite::or_zero(90.0)));
    assert_eq!(presence.speed_kmh, None);
    assert_eq!(
        presence.status,
        DriverStatus::Available,
        "without a status it is available"
    );
}

async fn remove(world: &World<'_>, id: &str) -> Result<(), RemoveDriverRefusal> {
    let removal = RemoveDriver {
        driver_id: driver(id),
    };
    world
        .store()
        .remove_driver(&world.region, removal)
        .await
        .unwrap()
}

async fn an_old_ping_does_not_bring_back_a_removed_driver(world: &World<'_>) {
    let now = world.begin().await;
    assert_eq!(
        remove(world, "d").await,
        Err(RemoveDriverRefusal::UnknownDriver)
    );
    world
        .ping_all(vec![Ping::at(driver("d"), place(0), now)])
        .await;
    world.wait(100).await;
    assert_eq!(remove(world, "d").await, Ok(()));
    assert_eq!(remove(world, "d").await, Ok(()));
    let late = Ping::at(driver("d"), place(0), later(now, 50));
    assert_eq!(world.ping_all(vec![late]).await.stale, 1);
    assert_eq!(world.driver_state("d").await, Some(DriverState::Offline));
    let back = Ping::at(driver("d"), place(0), later(now, 101));
    assert_eq!(world.ping_all(vec![back]).await.accepted, 1);
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
}

async fn a_held_driver_cannot_be_removed(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    assert_eq!(remove(world, "d").await, Err(RemoveDriverRefusal::Held));
    world.confirm(&claim).await.unwrap();
    assert_eq!(remove(world, "d").await, Err(RemoveDriverRefusal::Held));
    world.complete(&claim).await.unwrap();
    assert_eq!(remove(world, "d").await, Ok(()));
}

async fn a_silent_driver_is_forgotten_and_a_held_one_is_not(world: &World<'_>) {
    let claim = world.assign("r", "held").await;
    world.confirm(&claim).await.unwrap();
    let now = world.now().await;
    world
        .ping_all(vec![Ping::at(driver("silent"), place(0), now)])
        .await;
    world
        .ping_all(vec![Ping::at(driver("talker"), place(0), now)])
        .await;
    world.wait(400_000).await;
    world.sweep().await;
    let at = now + DurationMs::new(400_000);
    world
        .ping_all(vec![Ping::at(driver("talker"), place(0), at)])
        .await;
    world.wait(200_000).await;
    world.sweep().await;
    assert_eq!(world.driver_state("silent").await, None);
    assert_eq!(
        world.driver_state("talker").await,
        Some(DriverState::Available)
    );
    assert_eq!(world.driver_state("held").await, Some(DriverState::OnTrip));
}
