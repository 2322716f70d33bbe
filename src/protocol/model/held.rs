//! What the store holds, and one step of it: the shipped transition, looked at from all sides.

use std::sync::Arc;

use super::{
    bounds::{self, Bounds},
    cast,
    given::Given,
    step::Look,
};
use crate::{
    domain::{Generation, StoreTime},
    protocol::{
        Answer, Command, Event, GenerationChanged, Outbox, Region, StoreContext, invariants::Breach,
    },
};

/// A command on its way, with the generation that its node passes along.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Message {
    /// What is asked.
    pub(super) command: Command,
    /// What the node knew when it sent it.
    pub(super) known: Generation,
}

/// When and where a message arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// The tick of the store's clock.
    pub(super) tick: u8,
    /// How often the store lost data before: another primary each time.
    pub(super) primary: u8,
}

impl Moment {
    pub(super) fn now(self) -> StoreTime {
        bounds::time(self.tick, self.primary)
    }

    pub(super) fn store_id(self) -> Arc<str> {
        format!("primary-{}", self.primary).into()
    }
}

/// A region's data, and what was ever promised of it, by this primary or an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    /// The data; none after it was lost altogether.
    pub(super) region: Option<Region>,
    /// The highest versions ever given out, which the data may have forgotten.
    pub(super) given: Given,
}

/// What a message did.
pub(super) struct Taken {
    /// What the store holds then.
    pub(super) held: Held,
    /// The answer.
    pub(super) answer: Result<Answer, GenerationChanged>,
    /// What it published.
    pub(super) events: Vec<Event>,
    /// Whether a promise was broken.
    pub(super) verdict: Result<(), Breach>,
}

impl Held {
    /// A new region with its drivers, before anything happened.
    pub(super) fn begin(bounds: &Bounds) -> Self {
        let at = |tick| {
            let moment = Moment { tick, primary: 0 };
            StoreContext {
                now: moment.now(),
                known: None,
                store_id: moment.store_id(),
            }
        };
        let context = at(bounds::FIRST_TICK);
        let mut region = Region::fresh(cast::region(), bounds::rules(), "{}".into(), &at(0));
        plant(&mut region, bounds);
        region
            .apply(cast::pings(context.now.ms()), &context)
            .unwrap();
        if bounds.waiting > 0 {
            let requests = (0..bounds.waiting).map(cast::draft).collect();
            let intake = Command::Intake(crate::protocol::Intake { requests });
            region.apply(intake, &context).unwrap();
        }
        region.outbox = Outbox::default();
        let given = Given::by(&region);
        Self {
            region: Some(region),
            given,
        }
    }

    /// The message arrives: one step of the shipped code, checked.
    pub(super) fn take(&self, message: &Message, moment: Moment, bounds: &Bounds) -> Taken {
        let context = StoreContext {
            now: moment.now(),
            known: Some(message.known),
            store_id: moment.store_id(),
        };
        let before = self.region.clone().unwrap_or_else(|| {
            // the first step that meets no record writes one
            let mut region =
                Region::missing(cast::region(), bounds::rules(), "{}".into(), &context);
            plant(&mut region, bounds);
            region.outbox = Outbox::default();
            region
        });
        let mut after = before.clone();
        let answer = after.apply(message.command.clone(), &context);
        let events: Vec<Event> = after.outbox().since(before.last_event()).cloned().collect();
        // the books of a step begin anew: its events are numbered from the first
        after.outbox = Outbox::default();
        let look = Look {
            before: &before,
            given: &self.given,
            command: &message.command,
            answer: answer.as_ref(),
            events: &events,
            after: &after,
            now: context.now,
        };
        let verdict = look.check();
        let given = self
            .given
            .risen(&message.command, answer.as_ref(), &events, &after);
        Taken {
            held: Self {
                region: Some(after),
                given,
            },
            answer,
            events,
            verdict,
        }
    }
}

fn plant(region: &mut Region, bounds: &Bounds) {
    region.mutation = bounds.planted;
}
