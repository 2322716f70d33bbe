//! The outbox: every change once, in order, by cursor; and followers that are woken.

use super::{
    World, declare,
    world::{draft, request},
};
use crate::{
    domain::EventId,
    protocol::{After, Cursor, EventType},
};

declare!(
    pages_give_every_event_once_in_order,
    a_reader_may_start_at_the_end,
    a_cursor_of_another_generation_is_gone,
    old_events_go_and_the_cursor_says_so,
    a_follower_is_woken_by_every_change,
);

async fn pages_give_every_event_once_in_order(world: &World<'_>) {
    for n in 0..7 {
        world.ask(draft(&format!("r{n}"))).await;
    }
    let store = world.store();
    let mut after = After::Oldest;
    let mut seen = Vec::new();
    loop {
        let page = store
            .events(&world.region, after, 3)
            .await
            .unwrap()
            .unwrap();
        if page.events.is_empty() {
            break;
        }
        seen.extend(
            page.events
                .iter()
                .map(|event| event.request_id.clone().unwrap()),
        );
        after = After::Cursor(page.next.to_string().parse().unwrap());
    }
    let all: Vec<_> = (0..7).map(|n| request(&format!("r{n}"))).collect();
    assert_eq!(seen, all);
}

async fn a_reader_may_start_at_the_end(world: &World<'_>) {
    world.ask(draft("old")).await;
    let store = world.store();
    let page = store
        .events(&world.region, After::Latest, 10)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.events, []);
    world.ask(draft("new")).await;
    let after = After::Cursor(page.next);
    let page = store
        .events(&world.region, after, 10)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.events.len(), 1);
    assert_eq!(
        page.events.first().unwrap().request_id,
        Some(request("new"))
    );
}

async fn a_cursor_of_another_generation_is_gone(world: &World<'_>) {
    world.ask(draft("r")).await;
    let store = world.store();
    let page = store
        .events(&world.region, After::Oldest, 10)
        .await
        .unwrap()
        .unwrap();
    world.lose().await;
    world.begin().await;
    let after = After::Cursor(page.next);
    let gone = store
        .events(&world.region, after, 10)
        .await
        .unwrap()
        .unwrap_err();
    let after = After::Cursor(gone.oldest);
    let page = store
        .events(&world.region, after, 10)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        page.events.first().unwrap().kind,
        EventType::GenerationChanged
    );
    let ahead = Cursor {
        generation: page.next.generation,
        id: EventId::new(page.next.id.get() + 5),
    };
    assert!(
        store
            .events(&world.region, After::Cursor(ahead), 10)
            .await
            .unwrap()
            .is_err()
    );
}

async fn old_events_go_and_the_cursor_says_so(world: &World<'_>) {
    world.ask(draft("r")).await;
    let store = world.store();
    let first = store
        .events(&world.region, After::Oldest, 1)
        .await
        .unwrap()
        .unwrap();
    let before = Cursor {
        id: EventId::new(first.next.id.get() - 1),
        ..first.next
    };
    world.wait(3_600_001).await;
    world.ask(draft("s")).await;
    world.sweep().await;
    let gone = store
        .events(&world.region, After::Cursor(before), 10)
        .await
        .unwrap();
    let oldest = gone.unwrap_err().oldest;
    let kept = store
        .events(&world.region, After::Cursor(oldest), 10)
        .await
        .unwrap()
        .unwrap();
    let kinds: Vec<_> = kept.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventType::Requested, EventType::Expired]);
    assert_eq!(kept.events.first().unwrap().request_id, Some(request("s")));
}

async fn a_follower_is_woken_by_every_change(world: &World<'_>) {
    world.begin().await;
    let mut follower = world.store().watch(&world.region).await.unwrap();
    let before = *follower.borrow_and_update();
    let place = world.ask(draft("r")).await;
    follower.changed().await.unwrap();
    let after = *follower.borrow_and_update();
    assert!(after.last_event > before.last_event);
    let window = after.window.unwrap();
    assert_eq!(
        (window.seq, window.closes_at_ms),
        (place.window_seq, place.closes_at_ms)
    );
    assert!(!window.taken);
    assert!(after.next_due_ms.unwrap() <= window.closes_at_ms);
}
