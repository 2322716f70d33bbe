//! Windows: the grid, taking, claiming, sealing, taking over.

use super::{
    World, declare,
    world::{body, draft, driver, later, pair, place},
};
use crate::{
    domain::{DurationMs, Nonce, WindowSeq},
    protocol::{
        ClaimBatch, Configure, EventType, Holder, Intake, Owner, PairLoss, PairOutcome, Ping,
        RegionRules, ReportSource, RequestState, Seal, Source, TakeWindow, Taker, WindowRefusal,
    },
};

declare!(
    closes_lie_on_the_grid_of_the_first_request,
    many_requests_close_a_window_early,
    a_request_after_the_close_belongs_to_the_next_window,
    a_window_is_taken_after_its_close_by_the_leader_alone,
    an_overdue_window_is_taken_over_and_its_owner_refused,
    a_window_is_sealed_once,
    a_repeated_batch_gets_the_first_answer,
    claimed_drivers_and_requests_are_lost_to_the_next,
    what_a_window_leaves_over_the_next_decides,
    an_idle_region_makes_no_windows,
    windows_are_taken_in_order,
    unsealed_windows_are_bounded_and_nothing_is_lost,
    a_batch_is_bounded,
    the_snapshot_is_the_oldest_requests_and_every_driver,
    a_new_leader_ends_the_claims_of_the_old_one,
    the_decisions_of_a_window_are_kept,
);

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

async fn closes_lie_on_the_grid_of_the_first_request(world: &World<'_>) {
    let first = world.ask(draft("a")).await;
    let opened = world.now().await;
    assert_eq!(first.window_seq, WindowSeq::new(1));
    assert_eq!(first.closes_at_ms, later(opened, 3_000));
    world.wait(2_999).await;
    assert_eq!(world.ask(draft("b")).await, first);
    let taken = world.take(first.window_seq).await;
    world.seal(first.window_seq, taken.owner).await;
    // left over at 3,750 ms: the next point of the grid
    let next = world.store().overview(&world.region).await.unwrap().windows;
    assert_eq!(next.first().unwrap().closes_at_ms, later(opened, 6_000));
}

async fn many_requests_close_a_window_early(world: &World<'_>) {
    let rules = RegionRules {
        max_requests: 3,
        ..RegionRules::default()
    };
    configure(world, rules).await;
    let opened = world.now().await;
    let first = world.ask(draft("a")).await;
    world.wait(100).await;
    world.ask(draft("b")).await;
    let third = world.ask(draft("c")).await;
    assert_eq!(third.window_seq, first.window_seq);
    assert_eq!(
        third.closes_at_ms,
        later(opened, 500),
        "never before min_window_ms"
    );
    world.wait(400).await;
    let next = world.ask(draft("d")).await;
    assert_eq!(next.window_seq, first.window_seq.next());
    assert_eq!(next.closes_at_ms, later(opened, 3_000));
}

async fn a_request_after_the_close_belongs_to_the_next_window(world: &World<'_>) {
    let first = world.ask(draft("a")).await;
    world.wait(3_000).await;
    let second = world.ask(draft("b")).await;
    assert_eq!(second.window_seq, first.window_seq.next());
    let snapshot = world
        .store()
        .snapshot(&world.region, first.window_seq)
        .await
        .unwrap();
    let ids: Vec<_> = snapshot
        .unwrap()
        .requests
        .iter()
        .map(|r| r.draft.id.clone())
        .collect();
    assert_eq!(ids, [draft("a").id]);
}

async fn a_window_is_taken_after_its_close_by_the_leader_alone(world: &World<'_>) {
    let seq = world.ask(draft("r")).await.window_seq;
    let leader = world.lead().await;
    let take = |taker| TakeWindow {
        window_seq: seq,
        taker,
    };
    let store = world.store();
    let early = store
        .take_window(&world.region, take(leader))
        .await
        .unwrap();
    assert!(
        matches!(early, Err(WindowRefusal::NotClosed { .. })),
        "{early:?}"
    );
    world.wait(3_000).await;
    let Taker::Leader { epoch, .. } = leader else {
        return;
    };
    let rival = Taker::Leader {
        epoch,
        nonce: Nonce::new(999_999),
    };
    let refused = store.take_window(&world.region, take(rival)).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::NotLeader));
    let taken = store
        .take_window(&world.region, take(leader))
        .await
        .unwrap()
        .unwrap();
    let again = store
        .take_window(&world.region, take(leader))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken, again);
    let other = store.take_window(
        &world.region,
        take(Taker::Fallback {
            nonce: world.nonce(),
        }),
    );
    assert!(matches!(
        other.await.unwrap(),
        Err(WindowRefusal::NotOverdue { .. })
    ));
}

async fn an_overdue_window_is_taken_over_and_its_owner_refused(world: &World<'_>) {
    world.available("d").await;
    world.available("e").await;
    let seq = world.ask(draft("r")).await.window_seq;
    let leader = world.lead().await;
    world.wait(3_000).await;
    let take = TakeWindow {
        window_seq: seq,
        taker: leader,
    };
    let store = world.store();
    let taken = store
        .take_window(&world.region, take)
        .await
        .unwrap()
        .unwrap();
    let claimed = world.claim_all(seq, taken.owner, &[("r", "d")]).await;
    let fence = super::world::fence(*claimed.first().unwrap());
    world.wait(749).await;
    assert!(world.take_now(seq).await.is_err());
    world.wait(1).await;
    let taker = Taker::Fallback {
        nonce: world.nonce(),
    };
    let take = TakeWindow {
        window_seq: seq,
        taker,
    };
    let over = store
        .take_window(&world.region, take)
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(over.owner.holder, Holder::Fallback { .. }));
    let again = store
        .take_window(&world.region, take)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again.owner, over.owner);
    // the late leader is refused; what it claimed stands
    let late = ClaimBatch {
        window_seq: seq,
        owner: taken.owner,
        batch_no: 77,
        pairs: vec![pair("r", "e")],
    };
    let refused = store.claim_batch(&world.region, late).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::WindowLost));
    let seal = |owner| Seal {
        window_seq: seq,
        owner,
        body: body(),
        decisions: None,
    };
    let refused = store.seal(&world.region, seal(taken.owner)).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::WindowLost));
    let report = store
        .seal(&world.region, seal(over.owner))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(report.assigned, 1);
    let view = store
        .driver(&world.region, &driver("d"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.claim.unwrap().fence, fence);
}

async fn a_window_is_sealed_once(world: &World<'_>) {
    let seq = world.ask(draft("r")).await.window_seq;
    let taken = world.take(seq).await;
    let seal = |owner| Seal {
        window_seq: seq,
        owner,
        body: body(),
        decisions: None,
    };
    let store = world.store();
    let first = store
        .seal(&world.region, seal(taken.owner))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (first.window_seq, first.body.source),
        (seq, ReportSource::Fallback)
    );
    world.wait(50).await;
    let again = store
        .seal(&world.region, seal(taken.owner))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again, first);
    let other = Owner {
        holder: Holder::Fallback {
            take: crate::domain::Take::new(99),
            nonce: Nonce::new(99),
        },
        ..taken.owner
    };
    let refused = store.seal(&world.region, seal(other)).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::WindowLost));
    assert_eq!(world.take_now(seq).await, Err(WindowRefusal::WindowLost));
    let reports = store
        .reports(&world.region, WindowSeq::new(0), 10)
        .await
        .unwrap();
    assert_eq!(reports, [first]);
}

async fn a_repeated_batch_gets_the_first_answer(world: &World<'_>) {
    world.available("d").await;
    let seq = world.ask(draft("r")).await.window_seq;
    let taken = world.take(seq).await;
    let batch = ClaimBatch {
        window_seq: seq,
        owner: taken.owner,
        batch_no: 0,
        pairs: vec![pair("r", "d")],
    };
    let store = world.store();
    let first = store
        .claim_batch(&world.region, batch.clone())
        .await
        .unwrap()
        .unwrap();
    world.wait(100).await;
    let again = store
        .claim_batch(&world.region, batch.clone())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(first, again);
    let others = ClaimBatch {
        pairs: vec![pair("r", "e")],
        ..batch
    };
    let refused = store.claim_batch(&world.region, others).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::OtherPairs));
    assert_eq!(
        world.story("r").await,
        [EventType::Requested, EventType::Assigned]
    );
    let events = world.events().await;
    let assigned = events.last().unwrap();
    assert_eq!(assigned.source, Some(Source::Fallback));
    assert_eq!(assigned.window_seq, Some(seq));
    assert_eq!(assigned.lease_until_ms, Some(later(assigned.at_ms, 15_000)));
}

async fn claimed_drivers_and_requests_are_lost_to_the_next(world: &World<'_>) {
    for id in ["d", "e"] {
        world.available(id).await;
    }
    for id in ["r", "s", "t"] {
        world.ask(draft(id)).await;
    }
    let mut busy = Ping::at(driver("f"), place(0), world.now().await);
    busy.status = crate::protocol::DriverStatus::Busy;
    world.ping_all(vec![busy]).await;
    let seq = world.window().await.unwrap();
    let taken = world.take(seq).await;
    let pairs = [
        ("r", "d"),
        ("s", "d"),
        ("r", "e"),
        ("s", "f"),
        ("s", "g"),
        ("u", "e"),
    ];
    let outcomes = world.claim_all(seq, taken.owner, &pairs).await;
    assert!(matches!(
        outcomes.first(),
        Some(PairOutcome::Claimed { .. })
    ));
    let lost = [
        PairLoss::DriverClaimed,
        PairLoss::AlreadyAssigned,
        PairLoss::DriverNotAvailable,
        PairLoss::DriverUnknown,
        PairLoss::RequestUnknown,
    ];
    assert_eq!(outcomes.get(1..).unwrap(), lost.map(PairOutcome::Lost));
}

async fn what_a_window_leaves_over_the_next_decides(world: &World<'_>) {
    let first = world.ask(draft("r")).await.window_seq;
    let taken = world.take(first).await;
    world.seal(first, taken.owner).await;
    let second = world.window().await.unwrap();
    assert_eq!(second, first.next());
    let taken = world.take(second).await;
    let snapshot = world
        .store()
        .snapshot(&world.region, second)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.requests.first().unwrap().left_over, 1);
    world.available("d").await;
    let outcomes = world.claim_all(second, taken.owner, &[("r", "d")]).await;
    assert!(matches!(
        outcomes.first(),
        Some(PairOutcome::Claimed { .. })
    ));
}

async fn an_idle_region_makes_no_windows(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    assert_eq!(world.window().await, None, "nothing was left over");
    world.confirm(&claim).await.unwrap();
    for _ in 0..10 {
        world.wait(10_000).await;
        world.sweep().await;
    }
    assert_eq!(world.window().await, None);
    let next = world.ask(draft("s")).await;
    assert_eq!(next.window_seq, WindowSeq::new(2), "numbers have no gaps");
}

async fn windows_are_taken_in_order(world: &World<'_>) {
    let first = world.ask(draft("r")).await.window_seq;
    world.wait(3_000).await;
    let second = world.ask(draft("s")).await.window_seq;
    world.wait(10_000).await;
    let refused = world.take_now(second).await;
    assert_eq!(
        refused,
        Err(WindowRefusal::EarlierUnsealed { oldest: first })
    );
    assert!(world.take_now(first).await.is_ok());
}

async fn unsealed_windows_are_bounded_and_nothing_is_lost(world: &World<'_>) {
    for n in 0..20 {
        world.ask(draft(&format!("r{n}"))).await;
        world.wait(3_000).await;
    }
    let overview = world.store().overview(&world.region).await.unwrap();
    assert_eq!(overview.windows.len(), 16);
    let reports = world
        .store()
        .reports(&world.region, WindowSeq::new(0), 10)
        .await
        .unwrap();
    assert_eq!(reports.len(), 4);
    for report in &reports {
        assert_eq!(report.body.source, ReportSource::None);
        assert!(report.body.cause.is_some());
    }
    let oldest = world.window().await.unwrap();
    let snapshot = world
        .store()
        .snapshot(&world.region, oldest)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.requests.len(), 5, "four were carried over");
    assert_eq!(overview.pending, 20);
}

async fn a_batch_is_bounded(world: &World<'_>) {
    let seq = world.ask(draft("r")).await.window_seq;
    let taken = world.take(seq).await;
    let batch = |n| ClaimBatch {
        window_seq: seq,
        owner: taken.owner,
        batch_no: 0,
        pairs: (0..n).map(|_| pair("r", "d")).collect(),
    };
    let store = world.store();
    let refused = store.claim_batch(&world.region, batch(251)).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::TooLarge));
    assert!(
        store
            .claim_batch(&world.region, batch(250))
            .await
            .unwrap()
            .is_ok()
    );
}

async fn the_snapshot_is_the_oldest_requests_and_every_driver(world: &World<'_>) {
    let rules = RegionRules {
        max_snapshot_requests: 2,
        ..RegionRules::default()
    };
    configure(world, rules).await;
    let now = world.now().await;
    let at = |id, ago: i64| crate::protocol::RequestDraft {
        requested_at_ms: Some(later(now, -ago)),
        ..draft(id)
    };
    let requests = vec![at("young", 0), at("b", 500), at("a", 500), at("old", 900)];
    let intake = Intake { requests };
    world
        .store()
        .intake(&world.region, intake)
        .await
        .unwrap()
        .unwrap();
    let mut off = Ping::at(driver("off"), place(0), now);
    off.status = crate::protocol::DriverStatus::Offline;
    world
        .ping_all(vec![off, Ping::at(driver("on"), place(0), now)])
        .await;
    let seq = world.window().await.unwrap();
    let snapshot = world
        .store()
        .snapshot(&world.region, seq)
        .await
        .unwrap()
        .unwrap();
    let ids: Vec<_> = snapshot
        .requests
        .iter()
        .map(|r| r.draft.id.clone())
        .collect();
    assert_eq!(ids, [draft("old").id, draft("a").id]);
    assert_eq!(snapshot.deferred, 2);
    assert_eq!(snapshot.drivers.len(), 2);
    assert_eq!(
        world
            .store()
            .snapshot(&world.region, seq.next())
            .await
            .unwrap(),
        None
    );
}

async fn a_new_leader_ends_the_claims_of_the_old_one(world: &World<'_>) {
    world.available("d").await;
    let seq = world.ask(draft("r")).await.window_seq;
    let old = world.lead().await;
    world.wait(3_000).await;
    let store = world.store();
    let take = |taker| TakeWindow {
        window_seq: seq,
        taker,
    };
    let taken = store
        .take_window(&world.region, take(old))
        .await
        .unwrap()
        .unwrap();
    world.wait(57_000).await;
    let new = world.lead().await;
    let late = ClaimBatch {
        window_seq: seq,
        owner: taken.owner,
        batch_no: 0,
        pairs: vec![pair("r", "d")],
    };
    let refused = store.claim_batch(&world.region, late).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::WindowLost));
    let refused = store.take_window(&world.region, take(old)).await.unwrap();
    assert_eq!(refused, Err(WindowRefusal::NotLeader));
    let refused = store.take_window(&world.region, take(new)).await.unwrap();
    assert_eq!(
        refused,
        Err(WindowRefusal::WindowLost),
        "a fallback ends it"
    );
    assert!(world.take_now(seq).await.is_ok());
    assert_eq!(world.state("r").await, Some(RequestState::Pending));
}

async fn the_decisions_of_a_window_are_kept(world: &World<'_>) {
    let seq = world.ask(draft("r")).await.window_seq;
    let taken = world.take(seq).await;
    let seal = Seal {
        window_seq: seq,
        owner: taken.owner,
        body: body(),
        decisions: Some("[1]".into()),
    };
    world
        .store()
        .seal(&world.region, seal)
        .await
        .unwrap()
        .unwrap();
    let view = world
        .store()
        .report(&world.region, seq)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.decisions.as_deref(), Some("[1]"));
    assert_eq!(view.report.sealed_at_ms, world.now().await);
    assert!(view.report.closed_at_ms + DurationMs::new(750) <= view.report.sealed_at_ms);
    assert_eq!(
        world
            .store()
            .report(&world.region, seq.next())
            .await
            .unwrap(),
        None
    );
}
