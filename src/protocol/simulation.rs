//! Seeded worlds: nodes and a dispatch tier that repeat, reorder, come late and err, against one
//! region whose every step is checked.
//!
//! The same seed gives the same commands. A world may also drive another store: it only needs the
//! answers back.

use super::{
    generation::StoreContext,
    history::{Before, History, ms},
    invariants::{Breach, Invariant, hold},
    mutation::Mutation,
    operations::Command,
    region::Region,
    sweep::Sweep,
};
use crate::domain::{RegionId, StoreTime};

use super::world::id;
pub use super::world::{World, lively_rules};

/// What a run has seen; a run that saw too little proves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Steps checked.
    pub steps: u64,
    /// Claims made.
    pub claims: u64,
    /// Repeats of answered calls.
    pub repeats: u64,
    /// Batches refused to owners that were replaced.
    pub stale: u64,
    /// Times that the store lost data.
    pub losses: u64,
}

/// Runs a world of a seed against one region for a number of steps, checking every step. Now and
/// then the store loses everything, or falls back to an earlier state.
///
/// # Errors
/// The first promise broken, and the step at which it was.
pub fn run(seed: u64, steps: u64, planted: Option<Mutation>) -> Result<Seen, (u64, Breach)> {
    let mut world = World::new(seed);
    let mut context = StoreContext {
        now: world.now,
        known: None,
        store_id: "s0".into(),
    };
    let region_id = id(RegionId::new("dhaka"));
    let fresh = |context: &StoreContext| {
        Region::missing(region_id.clone(), lively_rules(), "{}".into(), context)
    };
    let mut region = fresh(&context);
    plant(&mut region, planted);
    let mut history = History::default();
    let mut earlier = region.clone();
    let mut losses = 0;
    let mut booked_claims = 0;
    for step in 0..steps {
        world.tick();
        context.now = world.now;
        if world.chance(3) {
            earlier = region.clone();
        }
        if world.below(400) == 0 {
            losses += 1;
            booked_claims += history.ledger.claims;
            context.store_id = format!("s{losses}").into();
            region = if world.chance(50) {
                fresh(&context)
            } else {
                earlier.clone()
            };
            plant(&mut region, planted);
            // the first step after the loss finds out, and changes nothing else
            let _ = region.guard(&context);
            history.lost(&region);
            region.forget_events();
            context.known = Some(region.generation());
            earlier = region.clone();
            continue;
        }
        let command = world.next(&region);
        context.now = world.now;
        let before = Before::look(&region, &command);
        let last = region.last_event();
        context.known = Some(region.generation());
        let Ok(answer) = region.apply(command.clone(), &context) else {
            continue;
        };
        let events: Vec<_> = region.outbox().since(last).cloned().collect();
        region.forget_events();
        world.learn(&command, &answer);
        history
            .check(&before, &command, &answer, &events, &region, world.now)
            .map_err(|breach| (step, breach))?;
    }
    heal(&mut region, &mut history, &mut world, &mut context).map_err(|breach| (steps, breach))?;
    Ok(Seen {
        steps: history.steps,
        claims: booked_claims + history.ledger.claims,
        repeats: history.repeats,
        stale: history.stale,
        losses,
    })
}

/// Everybody is gone, and only the sweep goes on: everything ends, and after its memory nothing is
/// left but the region's versions, configuration and reports.
fn heal(
    region: &mut Region,
    history: &mut History,
    world: &mut World,
    context: &mut StoreContext,
) -> Result<(), Breach> {
    for _ in 0..8 {
        world.now = StoreTime::from_ms(world.now.ms() + ms(400_000));
        context.now = world.now;
        context.known = Some(region.generation());
        for _ in 0..4 {
            let command = Command::Sweep(Sweep {});
            let before = Before::look(region, &command);
            let last = region.last_event();
            let Ok(answer) = region.apply(command.clone(), context) else {
                continue;
            };
            let events: Vec<_> = region.outbox().since(last).cloned().collect();
            region.forget_events();
            history.check(&before, &command, &answer, &events, region, world.now)?;
        }
    }
    let left = [
        region.requests.len(),
        region.drivers.len(),
        region.pending.len(),
        region.own_windows.len(),
        region.due.len(),
    ];
    hold!(Inv8, left == [0; 5], "left for ever: {left:?}");
    Ok(())
}

#[cfg(any(test, feature = "mutants"))]
fn plant(region: &mut Region, planted: Option<Mutation>) {
    region.mutation = planted;
}

#[cfg(not(any(test, feature = "mutants")))]
fn plant(_: &mut Region, _: Option<Mutation>) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedules() -> u64 {
        let asked = std::env::var("KHEYA_SCHEDULES").ok();
        asked.and_then(|n| n.parse().ok()).unwrap_or(20_000)
    }

    #[test]
    fn no_world_breaks_a_promise() {
        let mut seen = Seen::default();
        for seed in 0..schedules() {
            match run(seed, 200, None) {
                Ok(run) => {
                    seen.steps += run.steps;
                    seen.claims += run.claims;
                    seen.repeats += run.repeats;
                    seen.stale += run.stale;
                    seen.losses += run.losses;
                }
                Err((step, breach)) => panic!("seed {seed}, step {step}: {breach}"),
            }
        }
        eprintln!("{seen:?}");
        let runs = schedules();
        assert!(seen.claims > runs, "{seen:?}");
        assert!(
            seen.repeats > runs && seen.stale > runs && seen.losses > runs / 20,
            "{seen:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for seed in 0..20 {
            assert_eq!(run(seed, 300, None), run(seed, 300, None));
        }
    }

    /// What is sent to a store, recorded or replayed goes through JSON unharmed.
    #[test]
    fn commands_and_answers_survive_json() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut world = World::new(seed);
            let mut context = StoreContext {
                now: world.now,
                known: None,
                store_id: "s0".into(),
            };
            let name = RegionId::new("dhaka").unwrap();
            let mut region = Region::fresh(name, lively_rules(), "{}".into(), &context);
            for _ in 0..150 {
                world.tick();
                let command = world.next(&region);
                context.now = world.now;
                let answer = region.apply(command.clone(), &context).unwrap();
                world.learn(&command, &answer);
                kinds.insert(command.name());
                let text = serde_json::to_string(&command).unwrap();
                assert_eq!(
                    serde_json::from_str::<Command>(&text).unwrap(),
                    command,
                    "{text}"
                );
                let text = serde_json::to_string(&answer).unwrap();
                assert_eq!(
                    serde_json::from_str::<super::super::Answer>(&text).unwrap(),
                    answer,
                    "{text}"
                );
            }
            for event in region.outbox().since(crate::domain::EventId::default()) {
                let text = serde_json::to_string(event).unwrap();
                assert_eq!(
                    serde_json::from_str::<super::super::Event>(&text).unwrap(),
                    *event
                );
            }
        }
        assert_eq!(kinds.len(), 20, "{kinds:?}");
    }

    #[test]
    fn every_planted_bug_is_noticed() {
        let mut missed = Vec::new();
        for mutation in Mutation::ALL {
            let caught = (0..3_000).find_map(|seed| run(seed, 150, Some(mutation)).err());
            match caught {
                Some((step, breach)) => eprintln!("{mutation:?}: step {step}: {breach:.160}"),
                None => missed.push(mutation),
            }
        }
        assert_eq!(missed, []);
    }
}
