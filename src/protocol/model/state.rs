//! The state of the model and what may happen next: the store, two nodes, and what is on its way.

use std::sync::Arc;

use stateright::{Model, Property};

use super::{
    atlas::{Atlas, Outcome},
    bounds::{self, Bounds},
    held::{Held, Moment},
    node::Node,
    seen::Sight,
};
use crate::protocol::{ClaimPhase, Outbox, Region, invariants::Invariant};

/// Most messages on their way at once.
pub(super) const FLIGHT: usize = 3;

/// A message on its way. The smallest stand last, so that equal flights are equal arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Envelope {
    /// Its number; 0 is an empty place.
    message: u32,
    /// The gist of the answer that it got before, when it was kept to come again.
    first: u32,
    /// The node that sent it, and may hear the answer.
    via: u8,
}

/// The state of the model. Everything large stands in the [`Atlas`] under its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// What the store holds.
    held: u32,
    /// What a replica holds that lags behind; 0 while it does not.
    lagging: u32,
    /// What the nodes believe.
    nodes: [u32; 2],
    /// On its way.
    flight: [Envelope; FLIGHT],
    /// The store's clock.
    moment: (u8, u8),
    /// Ticks that may still pass.
    ticks: u8,
    /// Ticks for which each driver and request is still under an offer that the store lost.
    forgotten: [u8; 4],
    /// Leaderships that began, and trips that were restored, so far.
    spent: [u8; 2],
    /// A promise was broken on the way here.
    breach: Option<Invariant>,
}

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Move {
    /// Time passes.
    Tick,
    /// A message begins its way.
    Send { message: u32, via: u8 },
    /// A message is sent, arrives and is answered, all at once.
    AtOnce { message: u32, via: u8 },
    /// A message arrives. It may come again, and its answer may be lost.
    Arrive { slot: u8, again: bool, heard: bool },
    /// A message is lost.
    Lose { slot: u8 },
    /// From now on the replica lags behind.
    Lag,
    /// The replica takes the primary's place; its clock may be behind.
    FailOver { back: u8 },
    /// The store comes back empty.
    LoseAll,
}

impl State {
    fn moment(&self) -> Moment {
        Moment {
            tick: self.moment.0,
            primary: self.moment.1,
        }
    }

    fn losses_left(&self, bounds: &Bounds) -> u8 {
        bounds.losses - self.moment.1
    }

    fn settle(&mut self) {
        self.flight.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// The model of one configuration.
#[derive(Clone)]
pub(super) struct Protocol(pub(super) Arc<Atlas>);

impl Protocol {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Atlas::new(bounds)))
    }

    /// A move in words: the message, and what it is answered.
    pub(super) fn tell(&self, state: &State, action: Move) -> String {
        let message = match action {
            Move::Send { message, .. } | Move::AtOnce { message, .. } => message,
            Move::Arrive { slot, .. } | Move::Lose { slot } => {
                state.flight[usize::from(slot)].message
            }
            _ => return format!("{action:?}"),
        };
        let command = &self.0.messages.get(message).command;
        if matches!(action, Move::Send { .. } | Move::Lose { .. }) {
            return format!("{action:?}: {command:?}");
        }
        let answer = self.0.answer(state.held, message, state.moment());
        format!("{action:?}: {command:?}\n    -> {answer}")
    }

    /// A message arrives at the store.
    fn arrive(&self, state: &mut State, message: u32, via: u8, heard: bool) -> Outcome {
        let outcome = self.0.step(state.held, message, state.moment());
        state.held = outcome.held;
        for (spent, more) in state.spent.iter_mut().zip(outcome.spends) {
            *spent += more;
        }
        state.breach = outcome.breach;
        let offered_twice = (0..4).any(|n| outcome.offered >> n & 1 == 1 && state.forgotten[n] > 0);
        if offered_twice && state.breach.is_none() {
            state.breach = Some(Invariant::Inv1);
        }
        if heard {
            let node = &mut state.nodes[usize::from(via)];
            let before = *node;
            *node = self.0.hear(*node, outcome.heard);
            if *node != before && state.nodes.iter().all(|node| self.0.leads(*node)) {
                self.0.seen.sight(Sight::TwoLead);
            }
        }
        outcome
    }

    /// The primary is gone: what it offered and its follower does not know is still open outside.
    fn fail(&self, state: &mut State, follower: Option<u32>, back: u8) {
        let gone = self.0.held.get(state.held);
        let kept = follower.map(|held| self.0.held.get(held));
        let kept = kept.as_ref().and_then(|held| held.region.as_ref());
        let now = state.moment().now().ms();
        for n in 0..2 {
            let id = super::cast::driver(n);
            let claim = |region: &Region| {
                region
                    .drivers()
                    .get(&id)
                    .and_then(|driver| driver.claim.clone())
            };
            let Some(lost) = gone.region.as_ref().and_then(claim) else {
                continue;
            };
            let known = kept.and_then(claim).is_some_and(|c| c.fence == lost.fence);
            let ClaimPhase::Offered { lease_until_ms, .. } = lost.phase else {
                continue;
            };
            let left = (lease_until_ms - now).get();
            if known || left <= 0 {
                continue;
            }
            let ticks = left.div_euclid(bounds::TICK_MS) + i64::from(left % bounds::TICK_MS > 0);
            let request = usize::from(lost.request_id.as_str().ends_with('1'));
            for place in [n, 2 + request] {
                state.forgotten[place] = state.forgotten[place].max(ticks as u8);
            }
        }
        let region = kept.cloned().map(|mut region| {
            region.outbox = Outbox::default();
            region
        });
        let given = gone.given.after_loss();
        state.held = self.0.held.number(Held { region, given }).0;
        state.lagging = 0;
        state.moment.0 -= back;
        state.moment.1 += 1;
    }

    /// Whether every node knows the newest generation. Only then may the next primary's clock be
    /// behind: who knows nothing of a generation can only tell by the clock that it was before.
    fn newest_is_known(&self, state: &State) -> bool {
        let newest = self.0.held.get(state.held).given.generation;
        let knows = |node: &u32| self.0.nodes.get(*node).known == newest;
        state.nodes.iter().all(knows)
    }

    fn offers(&self, state: &State, moves: &mut Vec<Move>) {
        let moment = state.moment();
        let free = state.flight.iter().filter(|e| e.message == 0).count();
        let room = self.0.bounds.in_flight + free > FLIGHT;
        let mut first: Option<Arc<[super::atlas::Send]>> = None;
        for n in 0..2 {
            let sends = self.0.sends(state.held, state.nodes[n], n, moment);
            for send in sends.iter() {
                // what the dispatch tier sends is the same by either node
                if first.as_ref().is_some_and(|sent| sent.contains(send)) {
                    continue;
                }
                let (message, via) = (send.message, n as u8);
                if send.at_once {
                    moves.push(Move::AtOnce { message, via });
                } else if room && state.flight.iter().all(|e| e.message != message) {
                    moves.push(Move::Send { message, via });
                }
            }
            first = Some(sends);
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        let held = Held::begin(&self.0.bounds);
        let known = held.region.as_ref().map(Region::generation).unwrap();
        let node = self.0.nodes.number(Node::new(known)).0;
        vec![State {
            held: self.0.held.number(held).0,
            lagging: 0,
            nodes: [node; 2],
            flight: [Envelope::default(); FLIGHT],
            moment: (bounds::FIRST_TICK, 0),
            ticks: self.0.bounds.ticks,
            forgotten: [0; 4],
            spent: [0; 2],
            breach: None,
        }]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        if state.breach.is_some() {
            return;
        }
        if state.ticks > 0 {
            moves.push(Move::Tick);
        }
        for (slot, envelope) in (0..).zip(&state.flight) {
            if envelope.message == 0 {
                break;
            }
            for (again, heard) in [(false, true), (true, true), (false, false), (true, false)] {
                moves.push(Move::Arrive { slot, again, heard });
            }
            moves.push(Move::Lose { slot });
        }
        self.offers(state, moves);
        if state.losses_left(&self.0.bounds) > 0 {
            moves.push(Move::LoseAll);
            if state.lagging == 0 {
                moves.push(Move::Lag);
            } else {
                moves.push(Move::FailOver { back: 0 });
                if self.newest_is_known(state) {
                    moves.push(Move::FailOver { back: 1 });
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Move) -> Option<State> {
        let mut state = last.clone();
        match action {
            Move::Tick => {
                state.ticks -= 1;
                state.moment.0 += 1;
                state.forgotten = state.forgotten.map(|ticks| ticks.saturating_sub(1));
            }
            Move::Send { message, via } => {
                let node = &mut state.nodes[usize::from(via)];
                *node = self.0.sent(*node, message);
                let free = state.flight.iter_mut().find(|e| e.message == 0)?;
                *free = Envelope {
                    message,
                    first: 0,
                    via,
                };
                state.settle();
            }
            Move::AtOnce { message, via } => {
                let node = &mut state.nodes[usize::from(via)];
                *node = self.0.sent(*node, message);
                self.arrive(&mut state, message, via, true);
            }
            Move::Arrive { slot, again, heard } => {
                let envelope = state.flight[usize::from(slot)];
                let outcome = self.arrive(&mut state, envelope.message, envelope.via, heard);
                // an answer that tells its node nothing is the same heard or lost
                if !heard && outcome.heard == 0 {
                    return None;
                }
                let kept = &mut state.flight[usize::from(slot)];
                if envelope.first != 0 {
                    if outcome.gist == envelope.first {
                        self.0.seen.sight(Sight::Repeated);
                    } else if !outcome.excused {
                        state.breach = state.breach.or(Some(Invariant::Inv10));
                    }
                }
                if again {
                    kept.first = outcome.gist;
                } else {
                    *kept = Envelope::default();
                }
                state.settle();
            }
            Move::Lose { slot } => {
                state.flight[usize::from(slot)] = Envelope::default();
                state.settle();
            }
            Move::Lag => state.lagging = state.held,
            Move::FailOver { back } => self.fail(&mut state, Some(last.lagging), back),
            Move::LoseAll => self.fail(&mut state, None, 0),
        }
        Some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        let [leaderships, restored] = state.spent;
        leaderships <= self.0.bounds.leaderships && restored <= self.0.bounds.restored
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! kept {
            ($($name:literal $invariant:ident),* $(,)?) => {
                vec![$(Property::always($name, |_, state: &State| {
                    state.breach != Some(Invariant::$invariant)
                })),*]
            };
        }
        kept![
            "INV-1 one live claim a driver and a request" Inv1,
            "INV-2 fences rise" Inv2,
            "INV-3 every end compares the claim" Inv3,
            "INV-4 claims and seals by the owner alone" Inv4,
            "INV-6 a request ends once" Inv6,
            "INV-7 events tell what is" Inv7,
            "INV-8 everything ends" Inv8,
            "INV-10 a repeat gets the first answer" Inv10,
        ]
    }
}
