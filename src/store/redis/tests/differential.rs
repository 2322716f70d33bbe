//! Each script against the pure step that it stands for: random worlds drive both, command by
//! command, by the server's own clock. Answers, events, signals and everything that can be read must
//! be the same.

use std::sync::Arc;

use super::{
    super::{
        cell::Cell,
        wire::{self, Fate, Told},
    },
    server::OnServer,
};
use crate::{
    domain::{DurationMs, EventId, RegionId, StoreTime, WindowSeq},
    protocol::{
        After, Answer, Command, DriverView, Event, Query, Region, Reply, StoreContext, Sweep,
        simulation::{World, lively_rules},
    },
    store::{RegionSignal, Store, StoreOptions},
};

/// What a run has seen; one that saw too little proves nothing.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    steps: u64,
    refused: u64,
    claims: u64,
    losses: u64,
    /// Those after which a node came first that knew nothing of the region.
    unaware: u64,
    states: u64,
    /// Announced ends, of the driver's present claim and of an earlier one.
    ends: [u64; 2],
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.refused += other.refused;
        self.claims += other.claims;
        self.losses += other.losses;
        self.unaware += other.unaware;
        self.states += other.states;
        for (sum, seen) in self.ends.iter_mut().zip(other.ends) {
            *sum += seen;
        }
    }
}

/// A region on the server and the same region in memory.
struct Twins<'a> {
    on: &'a OnServer,
    cell: Arc<Cell>,
    pure: Region,
    context: StoreContext,
    compared: EventId,
    seen: Seen,
}

/// Says where a difference was found.
impl Drop for Twins<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (region, steps) = (self.pure.id(), self.seen.steps);
            eprintln!("in region {region} (its number is the seed) after {steps} steps");
        }
    }
}

const STORE_ID: &str = "the server's";

impl<'a> Twins<'a> {
    async fn new(on: &'a OnServer, name: &str, now: StoreTime) -> Self {
        let region = RegionId::new(name).unwrap();
        let context = StoreContext {
            now,
            known: None,
            store_id: STORE_ID.into(),
        };
        Self {
            on,
            cell: on.store.shared.cell_for(&region, true).await.unwrap(),
            pure: Self::missing(&region, &context),
            context,
            compared: EventId::default(),
            seen: Seen::default(),
        }
    }

    fn missing(region: &RegionId, context: &StoreContext) -> Region {
        Region::missing(region.clone(), lively_rules(), "{}".into(), context)
    }

    /// Executes a command on the server, with the configuration of a new region if it asks for it.
    async fn on_server(&self, command: &Command) -> Told<Answer> {
        let shared = &self.on.store.shared;
        let told = shared.run(&self.cell, command, false, wire::decode).await;
        match told.unwrap() {
            Told {
                fate: Fate::Missing(wire::Missing::Defaults),
                ..
            } => {
                let told = shared.run(&self.cell, command, true, wire::decode).await;
                told.unwrap()
            }
            told => told,
        }
    }

    /// Executes a command on both sides. Returns the answer, if it was executed.
    async fn step(&mut self, command: &Command, fresh: bool) -> Option<Answer> {
        let told = self.on_server(command).await;
        self.context.now = told.now;
        self.context.known = self.cell.known();
        if fresh {
            // it came to be, or was found to be gone, in this very step
            self.pure = Self::missing(self.pure.id(), &self.context);
            self.compared = EventId::default();
        }
        let pure = self.pure.apply(command.clone(), &self.context);
        let answer = match (told.fate, pure) {
            (Fate::Answered(there), Ok(here)) => {
                assert_eq!(there, here, "{command:?}");
                Some(here)
            }
            (Fate::Changed(there), Err(here)) => {
                assert_eq!(there, here, "{command:?}");
                None
            }
            (there, here) => panic!("{command:?}: {there:?} on the server, {here:?} here"),
        };
        self.cell.learn(self.pure.generation());
        let signal = told.signal.unwrap();
        assert_eq!(signal, RegionSignal::of(&self.pure), "{command:?}");
        self.cell.saw(told.now, signal);
        self.seen.steps += 1;
        answer
    }

    /// Everybody is gone, and only the sweep goes on: nothing is left, here nor there.
    async fn heal(&mut self, world: &mut World) {
        self.compare_events().await;
        for _ in 0..3 {
            let later = world.now.ms() + DurationMs::new(10_000_000);
            world.now = StoreTime::from_ms(later);
            self.on.set_clock(world.now);
            for _ in 0..2 {
                self.step(&Command::Sweep(Sweep {}), false).await;
            }
            self.compare_events().await;
            world.now = self.context.now;
        }
        self.compare_state().await;
        let left = [self.pure.requests().len(), self.pure.drivers().len()];
        assert_eq!((left, self.pure.next_due()), ([0, 0], None));
    }

    /// Compares the events since the last look.
    async fn compare_events(&mut self) {
        let generation = self.pure.generation();
        let cursor = crate::protocol::Cursor {
            generation,
            id: self.compared,
        };
        let query = Query::Events {
            after: After::Cursor(cursor),
            limit: 1_000,
        };
        let Reply::Events(there) = self.ask(query).await else {
            panic!("not events");
        };
        let there = there.unwrap().events;
        let here: Vec<Event> = self.pure.outbox().since(self.compared).cloned().collect();
        assert_eq!(there, here);
        self.compared = self.pure.last_event();
    }

    async fn ask(&self, query: Query) -> Reply {
        self.on.store.query(self.pure.id(), query).await.unwrap()
    }

    /// Compares everything that can be read.
    async fn compare_state(&mut self) {
        let (none, limit) = (None, 1_000);
        let requests = Query::Requests {
            state: None,
            after: none,
            limit,
        };
        let claims = Query::Claims {
            state: None,
            after: None,
            limit: 3,
        };
        let reports = Query::Reports {
            after: WindowSeq::default(),
            limit,
        };
        let mut queries = vec![Query::Overview, Query::Supply, requests, claims, reports];
        queries.extend(
            self.pure
                .windows()
                .map(|window| Query::Snapshot(window.seq)),
        );
        queries.push(Query::Report(WindowSeq::new(
            self.pure.last_window().get().saturating_sub(1),
        )));
        for query in queries {
            let there = self.ask(query.clone()).await;
            let at = match &there {
                Reply::Overview(view) => view.now_ms,
                Reply::Supply(supply) => supply.now_ms,
                Reply::Snapshot(Some(snapshot)) => snapshot.now_ms,
                _ => self.context.now.ms(),
            };
            let here = self.pure.query(&query, StoreTime::from_ms(at));
            assert_eq!(there, here, "{query:?}");
            if let Reply::Supply(supply) = here {
                self.count_ends(&supply.drivers);
            }
        }
        self.seen.states += 1;
    }

    fn count_ends(&mut self, drivers: &[DriverView]) {
        for driver in drivers {
            let told = driver.presence.as_ref().and_then(|seen| seen.trip_end);
            if let (Some(told), Some(claim)) = (told, &driver.claim) {
                self.seen.ends[usize::from(told.of(claim).is_none())] += 1;
            }
        }
    }
}

async fn run(on: &OnServer, seed: u64, steps: u64) -> Seen {
    let mut world = World::new(seed);
    on.set_clock(world.now);
    let mut twins = Twins::new(on, &format!("world-{seed}"), world.now).await;
    let region = twins.pure.id().clone();
    let mut fresh = true;
    let mut earlier: Option<Region> = None;
    for step in 0..steps {
        world.tick();
        if world.below(200) == 0 {
            // the clock is set back, by an hour at most
            let back = i64::from(world.below(3_600_000));
            world.now = StoreTime::from_ms(world.now.ms() - DurationMs::new(back));
        }
        if earlier.is_none() && !fresh && world.below(60) == 0 {
            on.dump(&region);
            earlier = Some(twins.pure.clone());
        }
        let mut aware = None;
        if !fresh && world.below(300) == 0 {
            twins.seen.losses += 1;
            if let Some(mut state) = earlier.take() {
                on.restore(&region);
                state.store_id = "lost".into();
                twins.compared = state.last_event();
                twins.pure = state;
            } else {
                on.delete(&region);
                fresh = true;
                if world.below(2) == 0 {
                    // a node that knows nothing of the region comes first
                    twins.seen.unaware += 1;
                    let unaware = Arc::new(Cell::new(region.clone(), None));
                    aware = Some(std::mem::replace(&mut twins.cell, unaware));
                }
            }
        }
        let command = if fresh {
            world.first()
        } else {
            world.next(&twins.pure)
        };
        on.set_clock(world.now);
        let answer = twins.step(&command, fresh).await;
        fresh = false;
        if let Some(aware) = aware {
            twins.cell = aware;
        }
        world.now = twins.context.now;
        if let Some(answer) = answer {
            world.learn(&command, &answer);
            count(&mut twins.seen, &answer);
        }
        if step % 25 == 24 {
            twins.compare_events().await;
        }
        if step % 50 == 49 {
            twins.compare_state().await;
        }
    }
    twins.heal(&mut world).await;
    twins.seen
}

fn count(seen: &mut Seen, answer: &Answer) {
    let told = serde_json::to_string(answer).unwrap();
    seen.refused += u64::from(told.contains("\"Err\""));
    seen.claims += told.matches("\"claimed\":{").count() as u64;
}

/// 200,000 random operations on two servers; `KHEYA_OPERATIONS` asks for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_script_differs_from_its_step() {
    const A_WORLD: u64 = 500;
    let asked = std::env::var("KHEYA_OPERATIONS").ok();
    let operations: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let worlds = operations.div_ceil(A_WORLD);
    let mut runs = tokio::task::JoinSet::new();
    for half in 0..2 {
        runs.spawn(async move {
            let options = StoreOptions {
                rules: lively_rules(),
                max_regions: 1_000_000,
                ..StoreOptions::default()
            };
            let on = OnServer::start(options).await;
            // nobody but the test takes a step
            on.store.watching.abort();
            let mut seen = Seen::default();
            for seed in (half..worlds).step_by(2) {
                seen += run(&on, seed, A_WORLD).await;
            }
            seen
        });
    }
    let mut seen = Seen::default();
    while let Some(run) = runs.join_next().await {
        seen += run.unwrap();
    }
    eprintln!("{seen:?}");
    assert!(seen.steps >= operations, "{seen:?}");
    assert!(seen.refused > operations / 10, "{seen:?}");
    assert!(seen.claims > operations / 100, "{seen:?}");
    assert!(seen.losses > operations / 1_000, "{seen:?}");
    assert!(seen.unaware > operations / 5_000, "{seen:?}");
    assert!(
        seen.ends.into_iter().all(|ends| ends > operations / 5_000),
        "{seen:?}"
    );
}
