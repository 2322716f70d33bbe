//! Requests: idempotent intake, bounds, expiry, cancelling.

use super::{
    World, declare,
    world::{draft, driver, later, request},
};
use crate::{
    domain::{DurationMs, RiderId},
    protocol::{
        CancelRefusal, CancelRequest, Cancelled, ClaimRefusal, Configure, DriverState, EntryCode,
        EventType, Intake, IntakeAnswer, IntakeRefusal, Reason, RegionRules, RequestDraft,
        RequestState,
    },
};

declare!(
    a_repeated_intake_gets_the_first_answer,
    another_body_under_the_same_id_is_refused,
    each_request_of_a_batch_stands_alone,
    a_long_batch_is_answered_as_a_whole,
    a_full_region_takes_no_more,
    a_paused_region_takes_none_and_serves_the_rest,
    a_request_that_waited_too_long_expires,
    an_ended_request_is_remembered_for_a_while,
    cancelling_frees_the_driver_at_once,
    cancelling_twice_is_cancelling_once,
    what_has_ended_cannot_be_cancelled,
);

async fn intake(world: &World<'_>, requests: Vec<RequestDraft>) -> IntakeAnswer {
    world
        .store()
        .intake(&world.region, Intake { requests })
        .await
        .unwrap()
        .unwrap()
}

async fn cancel(world: &World<'_>, id: &str) -> Result<Cancelled, CancelRefusal> {
    let cancel = CancelRequest {
        request_id: request(id),
    };
    world.store().cancel(&world.region, cancel).await.unwrap()
}

async fn a_repeated_intake_gets_the_first_answer(world: &World<'_>) {
    let place = world.ask(draft("r")).await;
    world.wait(4_000).await;
    let again = intake(world, vec![draft("r")]).await;
    let taken = again.requests.first().unwrap();
    assert!(taken.replayed);
    assert_eq!((taken.place, taken.state), (place, RequestState::Pending));
    cancel(world, "r").await.unwrap();
    let again = intake(world, vec![draft("r")]).await;
    assert_eq!(again.requests.first().unwrap().place, place);
    assert_eq!(world.state("r").await, Some(RequestState::Cancelled));
    assert_eq!(
        world.story("r").await,
        [EventType::Requested, EventType::Cancelled]
    );
}

async fn another_body_under_the_same_id_is_refused(world: &World<'_>) {
    world.ask(draft("r")).await;
    let mut other = draft("r");
    other.rider_id = RiderId::new("somebody").ok();
    let answer = intake(world, vec![other]).await;
    assert_eq!(answer.requests, []);
    assert_eq!(answer.rejected.first().unwrap().code, EntryCode::IdConflict);
}

async fn a_long_batch_is_answered_as_a_whole(world: &World<'_>) {
    let now = world.begin().await;
    let mut sent: Vec<RequestDraft> = (0..1_001).map(|n| draft(&format!("r{n}"))).collect();
    sent[230].requested_at_ms = Some(later(now, 60_000));
    sent[640] = draft("r3");
    let answer = intake(world, sent.clone()).await;
    assert_eq!(answer.requests.len(), 998);
    let ids = answer.requests.iter().map(|taken| taken.id.as_str());
    assert!(
        ids.eq((0..1_000)
            .filter(|n| ![230, 640].contains(n))
            .map(|n| format!("r{n}")))
    );
    let codes: Vec<_> = answer.rejected.iter().map(|r| (r.index, r.code)).collect();
    assert_eq!(
        codes,
        [
            (230, EntryCode::RequestedAtInFuture),
            (640, EntryCode::DuplicateInBatch),
            (1_000, EntryCode::TooLarge),
        ]
    );
    let again = intake(world, sent).await;
    assert!(again.requests.iter().all(|taken| taken.replayed));
    assert_eq!(again.requests.len(), 998);
}

async fn each_request_of_a_batch_stands_alone(world: &World<'_>) {
    let now = world.begin().await;
    let at = |id, at| RequestDraft {
        requested_at_ms: Some(at),
        ..draft(id)
    };
    let answer = intake(
        world,
        vec![
            draft("a"),
            at("future", later(now, 5_001)),
            draft("a"),
            at("old", later(now, -600_001)),
            at("just", later(now, -600_000)),
        ],
    )
    .await;
    let taken: Vec<_> = answer
        .requests
        .iter()
        .map(|taken| taken.id.clone())
        .collect();
    assert_eq!(taken, [request("a"), request("just")]);
    let rejected: Vec<_> = answer.rejected.iter().map(|r| (r.index, r.code)).collect();
    let expected = [
        (1, EntryCode::RequestedAtInFuture),
        (2, EntryCode::DuplicateInBatch),
        (3, EntryCode::AlreadyExpired),
    ];
    assert_eq!(rejected, expected);
}

async fn configure(world: &World<'_>, rules: RegionRules) {
    let configure = Configure {
        rules,
        document: "{}".into(),
        expected: None,
        actor: "test".into(),
        changes: "{}".into(),
    };
    world
        .store()
        .configure(&world.region, configure)
        .await
        .unwrap()
        .unwrap();
}

async fn a_full_region_takes_no_more(world: &World<'_>) {
    let rules = RegionRules {
        max_pending: 2,
        ..RegionRules::default()
    };
    configure(world, rules).await;
    let answer = intake(world, vec![draft("a"), draft("b"), draft("c")]).await;
    assert_eq!(answer.requests.len(), 2);
    assert_eq!(answer.rejected.first().unwrap().code, EntryCode::RegionFull);
    assert!(
        intake(world, vec![draft("a")])
            .await
            .requests
            .first()
            .unwrap()
            .replayed
    );
    cancel(world, "a").await.unwrap();
    assert_eq!(intake(world, vec![draft("c")]).await.requests.len(), 1);
}

async fn a_paused_region_takes_none_and_serves_the_rest(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let rules = RegionRules {
        paused: true,
        ..RegionRules::default()
    };
    configure(world, rules).await;
    let intake = Intake {
        requests: vec![draft("s")],
    };
    let refused = world.store().intake(&world.region, intake).await.unwrap();
    assert_eq!(refused, Err(IntakeRefusal::Paused));
    assert!(world.confirm(&claim).await.is_ok());
}

async fn a_request_that_waited_too_long_expires(world: &World<'_>) {
    world.ask(draft("r")).await;
    world.wait(600_000).await;
    world.sweep().await;
    assert_eq!(
        world.state("r").await,
        Some(RequestState::Pending),
        "just in time"
    );
    world.wait(1).await;
    world.sweep().await;
    assert_eq!(world.state("r").await, Some(RequestState::Expired));
    let events = world.events().await;
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind, last.reason),
        (EventType::Expired, Some(Reason::MaxWait))
    );
}

async fn an_ended_request_is_remembered_for_a_while(world: &World<'_>) {
    world.ask(draft("r")).await;
    cancel(world, "r").await.unwrap();
    world.wait(3_599_999).await;
    world.sweep().await;
    assert_eq!(world.state("r").await, Some(RequestState::Cancelled));
    world.wait(1).await;
    world.sweep().await;
    assert_eq!(world.state("r").await, None);
    assert_eq!(cancel(world, "r").await, Err(CancelRefusal::UnknownRequest));
    world.ask(draft("r")).await;
}

async fn cancelling_frees_the_driver_at_once(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    let cancelled = cancel(world, "r").await.unwrap();
    assert_eq!(cancelled.freed, Some((driver("d"), claim.fence)));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
    assert_eq!(
        world.confirm(&claim).await,
        Err(ClaimRefusal::RequestClosed)
    );
    let events = world.events().await;
    let told: Vec<_> = events
        .iter()
        .filter(|e| e.kind == EventType::Cancelled)
        .collect();
    assert_eq!(told.len(), 1);
    let told = told.first().unwrap();
    assert_eq!(
        (told.driver_id.clone(), told.fence),
        (Some(driver("d")), Some(claim.fence))
    );
    // no cool-down: the same pair may meet again
    let view = world
        .store()
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.cooldowns, []);
}

async fn cancelling_twice_is_cancelling_once(world: &World<'_>) {
    world.assign("r", "d").await;
    let first = cancel(world, "r").await;
    world.wait(2_000).await;
    assert_eq!(cancel(world, "r").await, first);
    let cancelled = |kind: &&EventType| **kind == EventType::Cancelled;
    assert_eq!(world.story("r").await.iter().filter(cancelled).count(), 1);
}

async fn what_has_ended_cannot_be_cancelled(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    world.confirm(&claim).await.unwrap();
    assert_eq!(
        cancel(world, "r").await,
        Err(CancelRefusal::AlreadyConfirmed)
    );
    world.complete(&claim).await.unwrap();
    assert_eq!(
        cancel(world, "r").await,
        Err(CancelRefusal::AlreadyConfirmed)
    );
    let mut short = draft("s");
    short.max_wait_ms = Some(DurationMs::new(1_000));
    world.ask(short).await;
    world.wait(1_001).await;
    assert_eq!(cancel(world, "s").await, Err(CancelRefusal::RequestClosed));
    assert_eq!(world.state("s").await, Some(RequestState::Expired));
    assert_eq!(cancel(world, "t").await, Err(CancelRefusal::UnknownRequest));
}
