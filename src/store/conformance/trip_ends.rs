//! Announced ends of trips: kept as presence, and read as those of the claim in which they were told.

use super::{
    World, declare,
    world::{draft, driver, later, place, request},
};
use crate::{
    domain::DurationMs,
    protocol::{
        AnnouncedEnd, CancelRequest, ClaimKey, DriverView, Patch, Ping, Reconcile, ReleaseReason,
        TripEnd, TripTold,
    },
};

declare!(
    an_announced_end_stands_as_it_was_told,
    an_end_told_in_an_earlier_claim_is_not_that_of_the_next,
    an_end_on_its_way_when_its_trip_ended_is_not_that_of_the_next,
    an_end_told_before_a_trip_was_restored_is_told_again,
);

/// How a claim can end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Released,
    LeaseOver,
    Cancelled,
    Completed,
    TripTimeout,
}

const ENDINGS: [Ending; 5] = [
    Ending::Released,
    Ending::LeaseOver,
    Ending::Cancelled,
    Ending::Completed,
    Ending::TripTimeout,
];

async fn view(world: &World<'_>, id: &str) -> DriverView {
    let view = world.store().driver(&world.region, &driver(id)).await;
    *view.unwrap().unwrap()
}

/// The announced end that counts for the driver's present claim.
async fn counted(world: &World<'_>, id: &str) -> Option<TripEnd> {
    let view = view(world, id).await;
    view.presence.unwrap().trip_end?.of(&view.claim.unwrap())
}

/// A driver pings after a while, with or without news of its trip's end.
async fn ping(world: &World<'_>, id: &str, trip_end: Patch<TripEnd>) {
    world.wait(10).await;
    let mut ping = Ping::at(driver(id), place(1), world.now().await);
    ping.trip_end = trip_end;
    assert_eq!(world.ping_all(vec![ping]).await.accepted, 1);
}

/// An end so far ahead that no ending here comes later.
async fn far_end(world: &World<'_>) -> TripEnd {
    TripEnd {
        place: place(7),
        at_ms: later(world.now().await, 200_000_000),
    }
}

async fn claimed_again(world: &World<'_>, id: &str, to: &str) -> ClaimKey {
    let window = world.ask(draft(id)).await.window_seq;
    let claim = world.assign_pending(window, id, to).await;
    world.confirm(&claim).await.unwrap();
    claim
}

async fn end(world: &World<'_>, claim: &ClaimKey, ending: Ending) {
    if matches!(ending, Ending::Completed | Ending::TripTimeout) {
        world.confirm(claim).await.unwrap();
    }
    match ending {
        Ending::Released => {
            let released = world.release(claim, ReleaseReason::Declined).await;
            released.unwrap();
        }
        Ending::Completed => {
            world.complete(claim).await.unwrap();
        }
        Ending::Cancelled => {
            let cancel = CancelRequest {
                request_id: claim.request_id.clone(),
            };
            let cancelled = world.store().cancel(&world.region, cancel).await;
            cancelled.unwrap().unwrap();
        }
        Ending::LeaseOver => world.wait(60_000).await,
        Ending::TripTimeout => {
            // heard of lately, so that the driver stays when its trip ends
            world.wait(12 * 3_600_000 - 60_000).await;
            ping(world, claim.driver_id.as_str(), Patch::Keep).await;
            world.wait(60_000).await;
        }
    }
    world.sweep().await;
    assert_eq!(view(world, claim.driver_id.as_str()).await.claim, None);
}

async fn an_announced_end_stands_as_it_was_told(world: &World<'_>) {
    let now = world.begin().await;
    let end = |ms| TripEnd {
        place: place(3),
        at_ms: later(now, ms),
    };
    let ping = |at, trip_end| {
        let mut ping = Ping::at(driver("d"), place(1), later(now, at));
        ping.trip_end = trip_end;
        ping
    };
    let told = |end, told| {
        Some(AnnouncedEnd {
            end,
            told_ms: later(now, told),
        })
    };
    let steps = [
        (ping(-3_000, Patch::Keep), None),
        // told when it was sent, if that is earlier than its arrival
        (ping(-2_000, Patch::Set(end(90))), told(end(90), -2_000)),
        (ping(-1_000, Patch::Keep), told(end(90), -2_000)),
        (ping(-500, Patch::Set(end(80))), told(end(80), -500)),
        // the same once more is news
        (ping(-400, Patch::Set(end(80))), told(end(80), -400)),
        (ping(-300, Patch::Clear), None),
        // a fast clock does not make it newer
        (ping(4_000, Patch::Set(end(70))), told(end(70), 0)),
        // and a stale ping tells nothing
        (ping(3_000, Patch::Set(end(60))), told(end(70), 0)),
    ];
    for (ping, expected) in steps {
        world.ping_all(vec![ping.clone()]).await;
        let presence = view(world, "d").await.presence.unwrap();
        assert_eq!(presence.trip_end, expected, "{ping:?}");
    }
}

async fn an_end_told_in_an_earlier_claim_is_not_that_of_the_next(world: &World<'_>) {
    for (n, ending) in ENDINGS.into_iter().enumerate() {
        let (first, second, car) = (format!("a{n}"), format!("b{n}"), format!("d{n}"));
        let claim = world.assign(&first, &car).await;
        let told = far_end(world).await;
        ping(world, &car, Patch::Set(told)).await;
        assert_eq!(counted(world, &car).await, Some(told), "{ending:?}");
        end(world, &claim, ending).await;

        ping(world, &car, Patch::Keep).await;
        let kept = view(world, &car).await.presence.unwrap().trip_end.unwrap();
        assert_eq!(kept.end, told, "a claim's end leaves the presence alone");
        let claim = claimed_again(world, &second, &car).await;
        assert_eq!(counted(world, &car).await, None, "{ending:?}");
        ping(world, &car, Patch::Keep).await;
        assert_eq!(counted(world, &car).await, None, "{ending:?}");

        let next = far_end(world).await;
        ping(world, &car, Patch::Set(next)).await;
        ping(world, &car, Patch::Keep).await;
        assert_eq!(counted(world, &car).await, Some(next), "{ending:?}");
        world.complete(&claim).await.unwrap();
    }
}

async fn an_end_on_its_way_when_its_trip_ended_is_not_that_of_the_next(world: &World<'_>) {
    let claim = world.assign("r1", "d").await;
    end(world, &claim, Ending::Completed).await;
    let sent = world.now().await;
    world.wait(10).await;
    claimed_again(world, "r2", "d").await;
    let mut late = Ping::at(driver("d"), place(1), sent);
    late.trip_end = Patch::Set(far_end(world).await);
    assert_eq!(world.ping_all(vec![late]).await.accepted, 1);
    assert_eq!(counted(world, "d").await, None);
}

async fn an_end_told_before_a_trip_was_restored_is_told_again(world: &World<'_>) {
    world.available("d").await;
    let told = far_end(world).await;
    ping(world, "d", Patch::Set(told)).await;
    let overview = world.store().overview(&world.region).await.unwrap();
    let generation = overview.generation;
    let trip = TripTold {
        driver_id: driver("d"),
        request_id: request("r"),
    };
    let telling = Reconcile {
        generation,
        on_trip: vec![trip],
        pending: Vec::new(),
        done: false,
    };
    let answer = world.store().reconcile(&world.region, telling).await;
    assert_eq!(answer.unwrap().unwrap().restored.len(), 1);
    assert_eq!(counted(world, "d").await, None);
    let again = TripEnd {
        at_ms: told.at_ms + DurationMs::new(1),
        ..told
    };
    ping(world, "d", Patch::Set(again)).await;
    assert_eq!(counted(world, "d").await, Some(again));
}
