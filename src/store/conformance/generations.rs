//! Data loss: a new generation, its quarantine, and telling what is true.

use super::{
    World, declare,
    world::{body, draft, driver, pair, request},
};
use crate::{
    domain::{DurationMs, Nonce},
    protocol::{
        BeginOwnWindow, CancelRefusal, CancelRequest, ClaimBatch, ClaimRefusal, DriverState,
        EventType, Fingerprint, Intake, IntakeRefusal, OwnRefusal, Reconcile, ReconcileRefusal,
        ReleaseReason, RequestState, Seal, TripTold, WindowRefusal,
    },
};

declare!(
    a_new_region_is_not_quarantined,
    lost_data_begins_a_generation_in_quarantine,
    a_quarantine_serves_what_it_can,
    what_is_told_is_held_under_new_fences,
    a_telling_of_another_generation_is_refused,
    a_late_telling_does_not_bring_a_completed_trip_back,
    the_quarantine_ends_and_what_waits_is_decided,
    a_promoted_replica_refuses_the_owners_of_before,
    what_survived_is_served_and_what_nobody_tells_is_over,
);

async fn a_new_region_is_not_quarantined(world: &World<'_>) {
    world.ask(draft("r")).await;
    let overview = world.store().overview(&world.region).await.unwrap();
    assert_eq!(overview.quarantined_until_ms, None);
}

async fn lost_data_begins_a_generation_in_quarantine(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let before = world.store().overview(&world.region).await.unwrap();
    world.lose().await;
    assert_eq!(world.confirm(&claim).await, Err(ClaimRefusal::NotHeld));
    let after = world.store().overview(&world.region).await.unwrap();
    assert!(after.generation > before.generation);
    let until = after.quarantined_until_ms.unwrap();
    assert_eq!(until, after.now_ms + DurationMs::new(60_000));
    let events = world.events().await;
    assert!(
        events
            .iter()
            .any(|event| event.kind == EventType::GenerationChanged)
    );
}

async fn a_quarantine_serves_what_it_can(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.lose().await;
    world.available("d").await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
    let store = world.store();
    let intake = Intake {
        requests: vec![draft("s")],
    };
    let refused = store.intake(&world.region, intake).await.unwrap();
    assert!(
        matches!(refused, Err(IntakeRefusal::Quarantined { .. })),
        "{refused:?}"
    );
    let own = BeginOwnWindow {
        window_id: crate::domain::WindowId::new("w").unwrap(),
        fingerprint: Fingerprint::of(b""),
        runner: Nonce::new(1),
        work_ms: DurationMs::new(1_000),
    };
    let refused = store.begin_own(&world.region, own).await.unwrap();
    assert!(
        matches!(refused, Err(OwnRefusal::Quarantined { .. })),
        "{refused:?}"
    );
    assert_eq!(world.complete(&claim).await, Err(ClaimRefusal::NotHeld));
    let released = world.release(&claim, ReleaseReason::Declined).await;
    assert_eq!(released, Err(ClaimRefusal::NotHeld));
    let cancel = CancelRequest {
        request_id: request("r"),
    };
    let refused = store.cancel(&world.region, cancel).await.unwrap();
    assert_eq!(refused, Err(CancelRefusal::NotHeld));
}

async fn tell(world: &World<'_>, done: bool) -> crate::protocol::ReconcileAnswer {
    let generation = world
        .store()
        .overview(&world.region)
        .await
        .unwrap()
        .generation;
    let telling = Reconcile {
        generation,
        on_trip: vec![TripTold {
            driver_id: driver("d"),
            request_id: request("r"),
        }],
        pending: vec![draft("s")],
        done,
    };
    world
        .store()
        .reconcile(&world.region, telling)
        .await
        .unwrap()
        .unwrap()
}

async fn what_is_told_is_held_under_new_fences(world: &World<'_>) {
    let mut claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    world.lose().await;
    world.begin().await;
    let told = tell(world, false).await;
    let restored = told.restored.first().unwrap();
    assert!(restored.fence > claim.fence);
    assert_eq!(
        tell(world, true).await.restored,
        told.restored,
        "told twice is told once"
    );
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(world.state("s").await, Some(RequestState::Pending));
    world.sweep().await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(world.complete(&claim).await, Err(ClaimRefusal::NotHeld));
    claim.fence = restored.fence;
    assert!(world.confirm(&claim).await.is_ok());
    assert!(world.complete(&claim).await.is_ok());
}

async fn a_late_telling_does_not_bring_a_completed_trip_back(world: &World<'_>) {
    let mut claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    world.lose().await;
    world.begin().await;
    let first = tell(world, false).await;
    claim.fence = first.restored.first().unwrap().fence;
    world.complete(&claim).await.unwrap();
    let again = tell(world, false).await;
    assert_eq!(again.restored, first.restored);
    assert_ne!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(
        world.story("r").await.last(),
        Some(&EventType::Completed),
        "nothing after its end"
    );
}

async fn a_telling_of_another_generation_is_refused(world: &World<'_>) {
    world.begin().await;
    let old = world
        .store()
        .overview(&world.region)
        .await
        .unwrap()
        .generation;
    world.lose().await;
    world.begin().await;
    let telling = Reconcile {
        generation: old,
        on_trip: Vec::new(),
        pending: Vec::new(),
        done: true,
    };
    let refused = world
        .store()
        .reconcile(&world.region, telling)
        .await
        .unwrap();
    assert!(
        matches!(refused, Err(ReconcileRefusal::GenerationChanged { .. })),
        "{refused:?}"
    );
}

async fn the_quarantine_ends_and_what_waits_is_decided(world: &World<'_>) {
    world.begin().await;
    world.lose().await;
    world.begin().await;
    tell(world, true).await;
    assert_eq!(world.window().await, None, "no windows in a quarantine");
    world.wait(59_999).await;
    world.sweep().await;
    assert_eq!(world.window().await, None);
    world.wait(1).await;
    world.sweep().await;
    let seq = world.window().await.unwrap();
    world.available("e").await;
    let claim = world.assign_pending(seq, "s", "e").await;
    assert!(world.confirm(&claim).await.is_ok());
    world.ask(draft("t")).await;
}

async fn a_promoted_replica_refuses_the_owners_of_before(world: &World<'_>) {
    world.available("d").await;
    let seq = world.ask(draft("r")).await.window_seq;
    let taken = world.take(seq).await;
    world.remember().await;
    let first = world.claim_all(seq, taken.owner, &[("r", "d")]).await;
    world.fall_back().await;
    let store = world.store();
    let late = ClaimBatch {
        window_seq: seq,
        owner: taken.owner,
        batch_no: 9,
        pairs: vec![pair("r", "d")],
    };
    let seal = Seal {
        window_seq: seq,
        owner: taken.owner,
        body: body(),
        decisions: None,
    };
    let lost = WindowRefusal::WindowLost;
    assert_eq!(
        store
            .claim_batch(&world.region, late.clone())
            .await
            .unwrap(),
        Err(lost)
    );
    assert_eq!(
        store.seal(&world.region, seal.clone()).await.unwrap(),
        Err(lost)
    );
    let refused = world.take_now(seq).await;
    assert!(
        matches!(refused, Err(WindowRefusal::Quarantined { .. })),
        "{refused:?}"
    );
    world.wait(60_000).await;
    assert_eq!(
        store.claim_batch(&world.region, late).await.unwrap(),
        Err(lost)
    );
    assert_eq!(store.seal(&world.region, seal).await.unwrap(), Err(lost));
    world.available("d").await;
    let taken = world.take(seq).await;
    let second = world.claim_all(seq, taken.owner, &[("r", "d")]).await;
    let fence = |outcomes: &[crate::protocol::PairOutcome]| {
        super::world::fence(outcomes.first().copied().unwrap())
    };
    assert!(fence(&second) > fence(&first), "fences rise over the loss");
    world.seal(seq, taken.owner).await;
}

async fn what_survived_is_served_and_what_nobody_tells_is_over(world: &World<'_>) {
    let kept = world.assign("r", "d").await;
    world.confirm(&kept).await.unwrap();
    let over = world.assign("gone", "e").await;
    world.confirm(&over).await.unwrap();
    let offered = world.assign("offered", "f").await;
    world.remember().await;
    world.complete(&over).await.unwrap();
    world.fall_back().await;
    assert!(
        world.confirm(&offered).await.is_ok(),
        "served against what is held"
    );
    let told = tell(world, true).await;
    let restored = told.restored.first().unwrap();
    assert_eq!(
        restored.fence, kept.fence,
        "it was not lost, so its fence still counts"
    );
    world.sweep().await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(world.driver_state("f").await, Some(DriverState::OnTrip));
    assert_eq!(world.driver_state("e").await, Some(DriverState::Available));
    assert!(world.complete(&kept).await.is_ok());
}
