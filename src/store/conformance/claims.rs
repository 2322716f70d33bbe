//! The table of claims: confirm, release, complete, extend, lease expiry, and their repeats.

use super::{
    World, declare,
    world::{driver, later, place, request},
};
use crate::{
    domain::{DurationMs, Fence},
    protocol::{
        ClaimKey, ClaimRefusal, ClaimState, DriverState, DriverStatus, EventType, Extend, Ping,
        Reason, ReleaseReason, RequestState,
    },
};

declare!(
    a_request_goes_its_whole_way,
    a_repeated_call_gets_its_first_answer,
    a_confirm_after_the_lease_is_refused_and_frees_the_driver,
    a_release_keeps_the_pair_apart_and_the_request_its_age,
    a_release_past_the_deadline_expires_the_request,
    an_undeliverable_offer_waits_for_the_next_ping,
    a_release_after_a_confirm_changes_nothing,
    a_completion_before_the_confirm_is_refused,
    an_old_fence_is_stale,
    calls_about_nothing_known_are_told_so,
    an_extended_lease_ends_later_with_the_same_fence,
    a_trip_that_nobody_completes_is_ended,
    a_driver_that_left_meanwhile_is_offline_after_the_trip,
    the_first_answers_outlive_a_second_claim,
    fences_rise_over_every_claim,
);

async fn a_request_goes_its_whole_way(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    assert_eq!(world.state("r").await, Some(RequestState::Assigned));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Offered));
    let confirmed = world.confirm(&claim).await.unwrap();
    assert_eq!(confirmed.state, ClaimState::OnTrip);
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    let completed = world.complete(&claim).await.unwrap();
    assert_eq!(completed.state, ClaimState::Available);
    assert_eq!(world.state("r").await, Some(RequestState::Confirmed));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
    let story = world.story("r").await;
    let whole = [
        EventType::Requested,
        EventType::Assigned,
        EventType::Confirmed,
        EventType::Completed,
    ];
    assert_eq!(story, whole);
    let view = world
        .store()
        .request(&world.region, &request("r"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.attempts, 1);
    assert_eq!(view.assignment.unwrap().fence, claim.fence);
}

async fn a_repeated_call_gets_its_first_answer(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let confirmed = world.confirm(&claim).await;
    world.wait(700).await;
    assert_eq!(world.confirm(&claim).await, confirmed);
    let completed = world.complete(&claim).await;
    world.wait(60_000).await;
    assert_eq!(world.complete(&claim).await, completed);
    assert_eq!(world.confirm(&claim).await, confirmed);
    let other = world.assign("s", "e").await;
    let released = world.release(&other, ReleaseReason::Declined).await;
    world.wait(700).await;
    assert_eq!(
        world.release(&other, ReleaseReason::Timeout).await,
        released
    );
    let released = |kind: &&EventType| **kind == EventType::Released;
    assert_eq!(world.story("s").await.iter().filter(released).count(), 1);
}

async fn a_confirm_after_the_lease_is_refused_and_frees_the_driver(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.wait(15_000).await;
    assert_eq!(world.confirm(&claim).await, Err(ClaimRefusal::LeaseExpired));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
    assert_eq!(world.state("r").await, Some(RequestState::Pending));
    assert_eq!(world.confirm(&claim).await, Err(ClaimRefusal::LeaseExpired));
    let story = world.story("r").await;
    let told = [
        EventType::Requested,
        EventType::Assigned,
        EventType::LeaseExpired,
    ];
    assert_eq!(story, told);
    assert!(
        world.window().await.is_some(),
        "who waits again has a window"
    );
}

async fn a_release_keeps_the_pair_apart_and_the_request_its_age(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let before = world
        .store()
        .request(&world.region, &request("r"))
        .await
        .unwrap()
        .unwrap();
    world.wait(5_000).await;
    let released = world
        .release(&claim, ReleaseReason::Declined)
        .await
        .unwrap();
    assert_eq!(released.state, ClaimState::Available);
    let after = world
        .store()
        .request(&world.region, &request("r"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(after.state, RequestState::Pending);
    assert_eq!(after.requested_at_ms, before.requested_at_ms);
    let window = world.window().await.unwrap();
    let taken = world.take(window).await;
    let outcomes = world.claim_all(window, taken.owner, &[("r", "d")]).await;
    let apart = crate::protocol::PairOutcome::Lost(crate::protocol::PairLoss::Cooldown);
    assert_eq!(outcomes, [apart]);
    let view = world
        .store()
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    let cooldown = view.cooldowns.first().unwrap();
    assert_eq!(cooldown.request_id, request("r"));
    assert_eq!(cooldown.until_ms, later(released.now_ms, 300_000));
}

async fn a_release_past_the_deadline_expires_the_request(world: &World<'_>) {
    world.available("d").await;
    let mut draft = super::world::draft("r");
    draft.max_wait_ms = Some(DurationMs::new(8_000));
    let window = world.ask(draft).await.window_seq;
    let claim = world.assign_pending(window, "r", "d").await;
    world.wait(10_000).await;
    assert_eq!(world.state("r").await, Some(RequestState::Assigned));
    world.release(&claim, ReleaseReason::Timeout).await.unwrap();
    assert_eq!(world.state("r").await, Some(RequestState::Expired));
    let story = world.story("r").await;
    assert_eq!(
        story.get(2..),
        Some(&[EventType::Released, EventType::Expired][..])
    );
}

async fn an_undeliverable_offer_waits_for_the_next_ping(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world
        .release(&claim, ReleaseReason::Undeliverable)
        .await
        .unwrap();
    let view = world
        .store()
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    assert!(!view.ready && view.cooldowns.is_empty());
    let window = world.window().await.unwrap();
    let taken = world.take(window).await;
    let outcomes = world.claim_all(window, taken.owner, &[("r", "d")]).await;
    let unready = crate::protocol::PairLoss::DriverNotAvailable;
    assert_eq!(outcomes, [crate::protocol::PairOutcome::Lost(unready)]);
    world.available("d").await;
    let outcomes = world.claim_all(window, taken.owner, &[("r", "d")]).await;
    assert!(super::world::fence(*outcomes.first().unwrap()) > claim.fence);
}

async fn a_release_after_a_confirm_changes_nothing(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    let refused = world.release(&claim, ReleaseReason::DriverCancelled).await;
    assert_eq!(refused, Err(ClaimRefusal::AlreadyConfirmed));
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(world.state("r").await, Some(RequestState::Confirmed));
    world.complete(&claim).await.unwrap();
    let refused = world.release(&claim, ReleaseReason::DriverCancelled).await;
    assert_eq!(refused, Err(ClaimRefusal::AlreadyConfirmed));
}

async fn a_completion_before_the_confirm_is_refused(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    assert_eq!(
        world.complete(&claim).await,
        Err(ClaimRefusal::NotConfirmed)
    );
    assert_eq!(world.driver_state("d").await, Some(DriverState::Offered));
}

async fn an_old_fence_is_stale(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let wrong = |fence| ClaimKey {
        fence,
        ..claim.clone()
    };
    for fence in [
        claim.fence.next(),
        Fence::new(claim.fence.get() - 1),
        Fence::new(0),
    ] {
        assert_eq!(
            world.confirm(&wrong(fence)).await,
            Err(ClaimRefusal::FenceStale)
        );
        assert_eq!(
            world.complete(&wrong(fence)).await,
            Err(ClaimRefusal::FenceStale)
        );
    }
    let elsewhere = ClaimKey {
        driver_id: driver("e"),
        ..claim.clone()
    };
    assert_eq!(
        world.confirm(&elsewhere).await,
        Err(ClaimRefusal::FenceStale)
    );
    world
        .release(&claim, ReleaseReason::Declined)
        .await
        .unwrap();
    assert_eq!(world.confirm(&claim).await, Err(ClaimRefusal::FenceStale));
    assert_eq!(
        world.complete(&claim).await,
        Err(ClaimRefusal::NotConfirmed)
    );
}

async fn calls_about_nothing_known_are_told_so(world: &World<'_>) {
    world.begin().await;
    let claim = ClaimKey {
        driver_id: driver("d"),
        request_id: request("r"),
        fence: Fence::new(1),
    };
    assert_eq!(
        world.confirm(&claim).await,
        Err(ClaimRefusal::UnknownRequest)
    );
    let refused = world.release(&claim, ReleaseReason::Declined).await;
    assert_eq!(refused, Err(ClaimRefusal::UnknownRequest));
    assert_eq!(world.state("r").await, None);
    assert_eq!(world.driver_state("d").await, None);
}

async fn an_extended_lease_ends_later_with_the_same_fence(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.wait(10_000).await;
    let extend = |lease_ms| Extend {
        claim: claim.clone(),
        lease_ms: DurationMs::new(lease_ms),
    };
    let store = world.store();
    let answer = store
        .extend(&world.region, extend(20_000))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.lease_until_ms, Some(later(answer.now_ms, 20_000)));
    // over the rail: capped; shorter than what is given: kept
    let answer = store
        .extend(&world.region, extend(900_000))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.lease_until_ms, Some(later(answer.now_ms, 60_000)));
    let same = store
        .extend(&world.region, extend(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(same.lease_until_ms, answer.lease_until_ms);
    world.wait(59_999).await;
    world.sweep().await;
    assert_eq!(world.confirm(&claim).await.unwrap().claim, claim);
    let refused = store.extend(&world.region, extend(20_000)).await.unwrap();
    assert_eq!(refused, Err(ClaimRefusal::AlreadyConfirmed));
}

async fn a_trip_that_nobody_completes_is_ended(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    world.wait(12 * 3_600_000 - 1).await;
    world.sweep().await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(world.state("r").await, Some(RequestState::Confirmed));
    world.wait(1).await;
    world.sweep().await;
    let events = world.events().await;
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind, last.reason),
        (EventType::Completed, Some(Reason::TripTimeout))
    );
    assert_eq!(
        world.driver_state("d").await,
        None,
        "its record had outlived its time"
    );
    let ended = world.complete(&claim).await.unwrap();
    assert_eq!(ended.state, ClaimState::Offline);
}

async fn a_driver_that_left_meanwhile_is_offline_after_the_trip(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    world.wait(1_000).await;
    let mut ping = Ping::at(driver("d"), place(2), world.now().await);
    ping.status = DriverStatus::Offline;
    world.ping_all(vec![ping]).await;
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    assert_eq!(
        world.complete(&claim).await.unwrap().state,
        ClaimState::Offline
    );
    assert_eq!(world.driver_state("d").await, Some(DriverState::Offline));
}

async fn the_first_answers_outlive_a_second_claim(world: &World<'_>) {
    let first = world.assign("r", "d").await;
    let released = world.release(&first, ReleaseReason::Declined).await;
    world.available("e").await;
    let window = world.window().await.unwrap();
    let second = world.assign_pending(window, "r", "e").await;
    assert!(second.fence > first.fence);
    assert_eq!(
        world.release(&first, ReleaseReason::Declined).await,
        released
    );
    assert_eq!(world.driver_state("e").await, Some(DriverState::Offered));
    assert_eq!(world.confirm(&first).await, Err(ClaimRefusal::FenceStale));
    assert_eq!(world.confirm(&second).await.unwrap().claim, second);
}

async fn fences_rise_over_every_claim(world: &World<'_>) {
    let mut last = Fence::new(0);
    for n in 0..5 {
        let claim = world.assign(&format!("r{n}"), &format!("d{n}")).await;
        assert!(claim.fence > last, "{} after {last}", claim.fence);
        assert!(claim.fence.get() < 1 << 53);
        last = claim.fence;
        world.wait(20_000).await;
        world.sweep().await;
    }
}
