//! Regions coming to be, configuration, listing, sweeping.

use super::{
    World, declare,
    world::{draft, driver, later, place, request},
};
use crate::{
    domain::{ConfigVersion, DurationMs, RegionId},
    protocol::{
        ClaimState, Configure, ConfigureRefusal, Configured, EventType, Intake, Ping, RegionRules,
        RequestState, Sweep,
    },
    store::StoreError,
};

declare!(
    a_region_comes_to_be_with_its_first_ping_request_or_config,
    a_new_window_length_holds_from_the_next_window,
    a_version_that_moved_on_is_a_mismatch,
    rules_that_cannot_stand_change_nothing,
    lists_come_in_pages,
    a_sweep_is_bounded_and_says_when_more_is_due,
);

fn configure(rules: RegionRules, expected: Option<ConfigVersion>) -> Configure {
    Configure {
        rules,
        document: "{}".into(),
        expected,
        actor: "ops-1".into(),
        changes: "{\"window_ms\":5000}".into(),
    }
}

async fn a_region_comes_to_be_with_its_first_ping_request_or_config(world: &World<'_>) {
    let store = world.store();
    let missing = store.overview(&world.region).await;
    assert_eq!(missing.unwrap_err(), StoreError::UnknownRegion);
    let swept = store.sweep(&world.region, Sweep {}).await;
    assert_eq!(swept.unwrap_err(), StoreError::UnknownRegion);
    assert!(!store.regions().await.unwrap().contains(&world.region));
    world.ask(draft("r")).await;
    assert!(store.regions().await.unwrap().contains(&world.region));
    let by_config = RegionId::new("tuned-first").unwrap();
    let rules = RegionRules::default();
    store
        .configure(&by_config, configure(rules, None))
        .await
        .unwrap()
        .unwrap();
    let regions = store.regions().await.unwrap();
    assert!(regions.contains(&by_config));
    assert!(regions.is_sorted());
}

async fn a_new_window_length_holds_from_the_next_window(world: &World<'_>) {
    let first = world.ask(draft("a")).await;
    let opened = world.now().await;
    world.wait(1_000).await;
    let rules = RegionRules {
        window_ms: DurationMs::new(5_000),
        ..RegionRules::default()
    };
    let store = world.store();
    let tuned = store
        .configure(&world.region, configure(rules.clone(), None))
        .await
        .unwrap();
    let version = ConfigVersion::new(2);
    assert_eq!(
        tuned,
        Ok(Configured {
            config_version: version
        })
    );
    let again = store
        .configure(&world.region, configure(rules, None))
        .await
        .unwrap();
    assert_eq!(again, tuned, "the same again is no new version");
    assert_eq!(
        world.ask(draft("b")).await,
        first,
        "what was promised stays"
    );
    world.wait(2_000).await;
    let next = world.ask(draft("c")).await;
    assert_eq!(next.closes_at_ms, later(opened, 3_000 + 5_000));
    let overview = store.overview(&world.region).await.unwrap();
    let lengths: Vec<_> = overview.windows.iter().map(|w| w.window_ms.get()).collect();
    assert_eq!(lengths, [3_000, 5_000]);
    let events = world.events().await;
    let told = events
        .iter()
        .find(|e| e.kind == EventType::ConfigChanged)
        .unwrap();
    assert_eq!(told.actor.as_deref(), Some("ops-1"));
    assert_eq!(told.config_version, Some(version));
}

async fn a_version_that_moved_on_is_a_mismatch(world: &World<'_>) {
    world.begin().await;
    let rules = |grace| RegionRules {
        grace_ms: DurationMs::new(grace),
        ..RegionRules::default()
    };
    let first = Some(ConfigVersion::new(1));
    let store = world.store();
    assert!(
        store
            .configure(&world.region, configure(rules(300), first))
            .await
            .unwrap()
            .is_ok()
    );
    let refused = store
        .configure(&world.region, configure(rules(400), first))
        .await
        .unwrap();
    let present = ConfigVersion::new(2);
    assert_eq!(refused, Err(ConfigureRefusal::VersionMismatch { present }));
}

async fn rules_that_cannot_stand_change_nothing(world: &World<'_>) {
    world.begin().await;
    let short = RegionRules {
        lease_ms: DurationMs::new(12_000),
        ..RegionRules::default()
    };
    let store = world.store();
    let refused = store
        .configure(&world.region, configure(short, None))
        .await
        .unwrap();
    assert!(
        matches!(refused, Err(ConfigureRefusal::Invalid(_))),
        "{refused:?}"
    );
    let overview = store.overview(&world.region).await.unwrap();
    assert_eq!(overview.rules, RegionRules::default());
}

async fn lists_come_in_pages(world: &World<'_>) {
    for n in 0..5 {
        world.assign(&format!("r{n}"), &format!("d{n}")).await;
    }
    world.ask(draft("waits")).await;
    let store = world.store();
    let page = store.claims(&world.region, None, None, 3).await.unwrap();
    let ids: Vec<_> = page
        .entries
        .iter()
        .map(|claim| claim.driver_id.clone())
        .collect();
    assert_eq!(ids, [driver("d0"), driver("d1"), driver("d2")]);
    let offered = Some(ClaimState::Offered);
    let rest = store
        .claims(&world.region, offered, page.next, 3)
        .await
        .unwrap();
    assert_eq!((rest.entries.len(), rest.next), (2, None));
    let none = store
        .claims(&world.region, Some(ClaimState::OnTrip), None, 3)
        .await
        .unwrap();
    assert_eq!(none.entries, []);
    let pending = Some(RequestState::Pending);
    let page = store
        .requests(&world.region, pending, None, 3)
        .await
        .unwrap();
    let ids: Vec<_> = page.entries.iter().map(|view| view.id.clone()).collect();
    assert_eq!(ids, [request("waits")]);
    let both = vec![request("waits"), request("nobody")];
    let views = store.requests_by_id(&world.region, both).await.unwrap();
    let known: Vec<_> = views.iter().map(Option::is_some).collect();
    assert_eq!(known, [true, false]);
    let supply = store.supply(&world.region).await.unwrap();
    assert_eq!(supply.drivers.len(), 6);
}

async fn a_sweep_is_bounded_and_says_when_more_is_due(world: &World<'_>) {
    let now = world.begin().await;
    let pings = (0..10)
        .map(|n| Ping::at(driver(&format!("d{n}")), place(0), now))
        .collect();
    world.ping_all(pings).await;
    let requests = (0..300).map(|n| draft(&format!("r{n}"))).collect();
    let intake = Intake { requests };
    world
        .store()
        .intake(&world.region, intake)
        .await
        .unwrap()
        .unwrap();
    world.wait(600_001).await;
    let first = world.store().sweep(&world.region, Sweep {}).await.unwrap();
    assert!(first.more && first.looked_at == 250, "{first:?}");
    world.sweep().await;
    let overview = world.store().overview(&world.region).await.unwrap();
    assert_eq!((overview.pending, overview.drivers), (0, 0));
    let again = world.store().sweep(&world.region, Sweep {}).await.unwrap();
    assert_eq!((again.looked_at, again.more), (0, false));
}
