//! The dispatch tier's own windows: idempotent, from any node, over the same claims.

use std::sync::Arc;

use super::{
    World, declare,
    world::{draft, driver},
};
use crate::{
    domain::{CostMs, DurationMs, Nonce, WindowId},
    protocol::{
        BatchAnswer, BeginOwnWindow, ClaimKey, ClaimOwnBatch, EntryCode, Fingerprint,
        FinishOwnWindow, Intake, OwnBegun, OwnPair, OwnRefusal, PairLoss, PairOutcome,
        ReleaseReason, RequestState, Source,
    },
};

declare!(
    an_own_window_is_answered_the_same_however_often,
    another_body_is_a_conflict_and_a_rival_waits,
    a_second_node_takes_over_what_was_claimed,
    a_matched_request_has_a_record_and_an_unmatched_none,
    a_released_request_may_come_again,
    what_is_pending_or_assigned_is_not_claimed,
    an_own_window_is_forgotten_after_its_time,
);

async fn begin(world: &World<'_>, body: &[u8], runner: u64) -> Result<OwnBegun, OwnRefusal> {
    let begin = BeginOwnWindow {
        window_id: WindowId::new("w").unwrap(),
        fingerprint: Fingerprint::of(body),
        runner: Nonce::new(runner),
        work_ms: DurationMs::new(1_000),
    };
    world.store().begin_own(&world.region, begin).await.unwrap()
}

async fn claim(
    world: &World<'_>,
    runner: u64,
    batch_no: u32,
    pairs: &[(&str, &str)],
) -> Result<Arc<BatchAnswer>, OwnRefusal> {
    let batch = ClaimOwnBatch {
        window_id: WindowId::new("w").unwrap(),
        runner: Nonce::new(runner),
        batch_no,
        lease_ms: Some(DurationMs::new(20_000)),
        pairs: pairs
            .iter()
            .map(|(r, d)| OwnPair {
                request: Arc::new(draft(r)),
                driver_id: driver(d),
                eta: DurationMs::new(60_000),
                cost: CostMs::new(60_000),
            })
            .collect(),
    };
    world.store().claim_own(&world.region, batch).await.unwrap()
}

async fn finish(world: &World<'_>, runner: u64, result: &str) -> Result<Arc<str>, OwnRefusal> {
    let finish = FinishOwnWindow {
        window_id: WindowId::new("w").unwrap(),
        runner: Nonce::new(runner),
        result: result.into(),
    };
    world
        .store()
        .finish_own(&world.region, finish)
        .await
        .unwrap()
}

const RUN: OwnBegun = OwnBegun::Run {
    claimed: Vec::new(),
};

async fn an_own_window_is_answered_the_same_however_often(world: &World<'_>) {
    assert_eq!(begin(world, b"a", 1).await, Ok(RUN));
    assert_eq!(finish(world, 1, "first").await.as_deref(), Ok("first"));
    assert_eq!(finish(world, 1, "first").await.as_deref(), Ok("first"));
    assert_eq!(
        finish(world, 1, "second").await,
        Err(OwnRefusal::WindowLost)
    );
    for runner in [1, 2] {
        let done = OwnBegun::Done {
            result: "first".into(),
        };
        assert_eq!(begin(world, b"a", runner).await, Ok(done));
    }
    assert_eq!(claim(world, 1, 0, &[]).await, Err(OwnRefusal::WindowLost));
}

async fn another_body_is_a_conflict_and_a_rival_waits(world: &World<'_>) {
    assert_eq!(begin(world, b"a", 1).await, Ok(RUN));
    assert_eq!(begin(world, b"b", 1).await, Err(OwnRefusal::WindowConflict));
    let waits = begin(world, b"a", 2).await;
    assert!(
        matches!(waits, Err(OwnRefusal::WindowInProgress { .. })),
        "{waits:?}"
    );
    assert_eq!(begin(world, b"a", 1).await, Ok(RUN), "a repeat goes on");
}

async fn a_second_node_takes_over_what_was_claimed(world: &World<'_>) {
    world.available("d").await;
    begin(world, b"a", 1).await.unwrap();
    let first = claim(world, 1, 0, &[("r", "d")]).await.unwrap();
    assert_eq!(claim(world, 1, 0, &[("r", "d")]).await.unwrap(), first);
    world.wait(1_000).await;
    let Ok(OwnBegun::Run { claimed }) = begin(world, b"a", 2).await else {
        assert_eq!(
            begin(world, b"a", 2).await,
            Ok(RUN),
            "it must be taken over"
        );
        return;
    };
    let claimed = claimed.first().unwrap();
    assert_eq!(
        (claimed.request_id.as_str(), claimed.driver_id.as_str()),
        ("r", "d")
    );
    let outcome = first.outcomes.first().copied().unwrap();
    assert_eq!(claimed.fence, super::world::fence(outcome));
    assert_eq!(claimed.lease_ms, DurationMs::new(20_000));
    assert_eq!(claim(world, 1, 1, &[]).await, Err(OwnRefusal::WindowLost));
    assert_eq!(finish(world, 1, "late").await, Err(OwnRefusal::WindowLost));
    assert!(finish(world, 2, "whole").await.is_ok());
}

async fn a_matched_request_has_a_record_and_an_unmatched_none(world: &World<'_>) {
    world.available("d").await;
    begin(world, b"a", 1).await.unwrap();
    let answer = claim(world, 1, 0, &[("r", "d"), ("s", "d")]).await.unwrap();
    let lost = PairOutcome::Lost(PairLoss::DriverClaimed);
    assert_eq!(answer.outcomes.get(1), Some(&lost));
    assert_eq!(world.state("r").await, Some(RequestState::Assigned));
    assert_eq!(world.state("s").await, None);
    assert_eq!(
        world.window().await,
        None,
        "the region's windows know nothing of it"
    );
    let events = world.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events.first().unwrap().source, Some(Source::Own));
}

async fn a_released_request_may_come_again(world: &World<'_>) {
    world.available("d").await;
    begin(world, b"a", 1).await.unwrap();
    let answer = claim(world, 1, 0, &[("r", "d")]).await.unwrap();
    let key = ClaimKey {
        driver_id: driver("d"),
        request_id: crate::domain::RequestId::new("r").unwrap(),
        fence: super::world::fence(answer.outcomes.first().copied().unwrap()),
    };
    let released = world.release(&key, ReleaseReason::Declined).await;
    assert_eq!(world.state("r").await, Some(RequestState::Released));
    assert_eq!(world.window().await, None, "it does not become pending");
    world.available("e").await;
    let again = claim(world, 1, 1, &[("r", "d"), ("r", "e")]).await.unwrap();
    let apart = PairOutcome::Lost(PairLoss::Cooldown);
    assert_eq!(again.outcomes.first(), Some(&apart));
    assert!(matches!(
        again.outcomes.get(1),
        Some(PairOutcome::Claimed { .. })
    ));
    assert_eq!(world.release(&key, ReleaseReason::Declined).await, released);
    world.wait(20_000).await;
    world.sweep().await;
    assert_eq!(world.state("r").await, Some(RequestState::Released));
    world.ask(draft("r")).await;
    assert_eq!(world.state("r").await, Some(RequestState::Pending));
}

async fn what_is_pending_or_assigned_is_not_claimed(world: &World<'_>) {
    world.ask(draft("waits")).await;
    let held = world.assign("held", "d").await;
    world.available("e").await;
    begin(world, b"a", 1).await.unwrap();
    let pairs = [("waits", "e"), ("held", "e")];
    let lost = [PairLoss::AlreadyPending, PairLoss::AlreadyAssigned].map(PairOutcome::Lost);
    assert_eq!(claim(world, 1, 0, &pairs).await.unwrap().outcomes, lost);
    world.confirm(&held).await.unwrap();
    let answer = claim(world, 1, 1, &[("held", "e")]).await.unwrap();
    assert_eq!(
        answer.outcomes,
        [PairOutcome::Lost(PairLoss::AlreadyAssigned)]
    );
    world.complete(&held).await.unwrap();
    let answer = claim(world, 1, 2, &[("held", "e"), ("own", "e")])
        .await
        .unwrap();
    let closed = PairOutcome::Lost(PairLoss::RequestClosed);
    assert_eq!(answer.outcomes.first(), Some(&closed));
    let intake = Intake {
        requests: vec![draft("own")],
    };
    let taken = world
        .store()
        .intake(&world.region, intake)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken.rejected.first().unwrap().code, EntryCode::IdConflict);
}

async fn an_own_window_is_forgotten_after_its_time(world: &World<'_>) {
    begin(world, b"a", 1).await.unwrap();
    finish(world, 1, "answer").await.unwrap();
    world.wait(119_999).await;
    world.sweep().await;
    assert!(begin(world, b"b", 1).await.is_err());
    world.wait(1).await;
    world.sweep().await;
    assert_eq!(begin(world, b"b", 1).await, Ok(RUN));
}
