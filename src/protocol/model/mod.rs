//! The model: every order in which commands can reach one region, within bounds.
//!
//! Two drivers, two requests, two nodes, a dispatch tier, a clock in coarse ticks, a store that may
//! lose its data, and a network that loses, delays, repeats and reorders. The store's side is the
//! shipped transition itself, [`super::Region::apply`]; the rest is only who may send what, and when
//! it arrives. Each configuration is searched to its end, and each planted bug must be found by one.
//!
//! A state is a handful of numbers: data, messages and beliefs stand in an atlas, and each step of
//! the shipped code is executed once, with every promise checked there. That is what makes tens of
//! millions of states cheap; it rests on the step being pure, of which a sample is checked too.
//!
//! What it assumes, and a proof of more would have to lift: a tick is a lease, a cool-down and the
//! distance of two closes; no two primaries begin a generation in the same microsecond; the clock of
//! a primary is behind the last one's by a tick at most, and only while every node knows the newest
//! generation. A tick within which a trip or a memory ends is not reached; that all ends is shown
//! instead from every state of the data, with nothing but the sweep going on.

mod atlas;
mod bounds;
mod cast;
mod configurations;
mod gist;
mod given;
mod held;
mod node;
mod owners;
mod rest;
mod seen;
mod sends;
mod state;
mod step;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use stateright::{Checker, HasDiscoveries, Model, Path};

    use super::{
        bounds::Bounds,
        configurations::{EVERY_RUN, LARGE, OUTSIDE, hunting_ground},
        state::{Move, Protocol, State},
    };
    use crate::protocol::Mutation;

    /// The aim over all configurations of every run.
    const LEAST_STATES: usize = 10_000_000;

    /// What happened on a path, for people.
    fn tell(model: &Protocol, path: Path<State, Move>) -> String {
        let steps = path.into_vec().into_iter();
        steps
            .filter_map(|(state, action)| Some(model.tell(&state, action?)))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Searches one configuration to its end, and returns the number of its states.
    fn search(bounds: Bounds) -> usize {
        let began = Instant::now();
        let model = Protocol::new(bounds);
        // depth first: what is still to be looked at stays small
        let checker = model
            .clone()
            .checker()
            .threads(2)
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_dfs()
            .join();
        let states = checker.unique_state_count();
        eprintln!(
            "{}: {states} states, {} transitions, at most {} steps deep, {} executions of the \
             transition over {} states of the data, {:.0?}\n    met: {}",
            bounds.name,
            checker.state_count(),
            checker.max_depth(),
            model.0.executed(),
            model.0.held.len(),
            began.elapsed(),
            model.0.seen,
        );
        if let Some((property, path)) = checker.discoveries().into_iter().next() {
            let breach = model.0.breach().map(|breach| breach.to_string());
            panic!(
                "{}: {property}\n{breach:?}\n{}",
                bounds.name,
                tell(&model, path)
            );
        }
        assert!(
            states >= bounds.least_states,
            "{}: {states} states prove too little",
            bounds.name
        );
        for sight in bounds.must_see {
            assert!(
                model.0.seen.count(*sight) > 0,
                "{}: never met {sight:?}",
                bounds.name
            );
        }
        states
    }

    #[test]
    fn no_order_of_commands_breaks_a_promise() {
        let states: usize = EVERY_RUN.into_iter().map(search).sum();
        eprintln!("{states} states in all");
        assert!(states >= LEAST_STATES, "{states} states prove too little");
    }

    #[test]
    #[ignore = "takes many minutes and gigabytes: tests/model --large"]
    fn no_order_of_commands_breaks_a_promise_within_wider_bounds() {
        let states: usize = LARGE.into_iter().map(search).sum();
        eprintln!("{states} states in all");
        assert!(
            states >= 10 * LEAST_STATES,
            "{states} states prove too little"
        );
    }

    #[test]
    fn the_model_notices_every_planted_bug_within_its_scope() {
        let mut missed = Vec::new();
        for mutation in Mutation::ALL {
            if let Some((_, why)) = OUTSIDE.iter().find(|(outside, _)| *outside == mutation) {
                eprintln!("{mutation:?}: outside of the model: {why}");
                continue;
            }
            let bounds = hunting_ground(mutation);
            let began = Instant::now();
            let model = Protocol::new(bounds);
            // breadth first: the shortest way to the bug, and long before the end
            let checker = model
                .clone()
                .checker()
                .threads(2)
                .finish_when(HasDiscoveries::AnyFailures)
                .spawn_bfs()
                .join();
            match checker.discoveries().into_iter().next() {
                Some((property, path)) => eprintln!(
                    "{mutation:?}: {} within {} moves, {:.0?} in \"{}\"",
                    property,
                    path.into_actions().len(),
                    began.elapsed(),
                    bounds.name,
                ),
                None => missed.push(mutation),
            }
        }
        assert_eq!(missed, []);
    }
}
