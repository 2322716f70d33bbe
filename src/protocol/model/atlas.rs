//! The atlas: everything of a run that was met, numbered, and every step that was taken, once.
//!
//! [`crate::protocol::Region::apply`] is pure: the same data, message and moment give the same
//! outcome. So the shipped code is executed once for each of them, and the many states of the model
//! that differ only in what is on its way, or in what the nodes believe, share that one execution.

use std::{hash::Hash, sync::Arc};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::{
    bounds::Bounds,
    gist::{self, Gist},
    held::{Held, Message, Moment},
    node::{Heard, Node},
    rest,
    seen::Seen,
    sends,
};
use crate::{
    domain::{DriverId, RequestId},
    protocol::{
        Answer, Event, EventType, Reason,
        invariants::{Breach, Invariant},
    },
};

/// Values by their numbers; 0 is none.
pub(super) struct Numbered<T> {
    rows: RwLock<Vec<Arc<T>>>,
    numbers: Mutex<FxHashMap<Arc<T>, u32>>,
}

impl<T: Hash + Eq> Numbered<T> {
    fn new() -> Self {
        Self {
            rows: RwLock::default(),
            numbers: Mutex::default(),
        }
    }

    /// The number of a value, and whether it is new.
    pub(super) fn number(&self, value: T) -> (u32, bool) {
        let mut numbers = self.numbers.lock();
        if let Some(&number) = numbers.get(&value) {
            return (number, false);
        }
        let value = Arc::new(value);
        let mut rows = self.rows.write();
        rows.push(Arc::clone(&value));
        let number = rows.len() as u32;
        numbers.insert(value, number);
        (number, true)
    }

    /// The value of a number.
    pub(super) fn get(&self, number: u32) -> Arc<T> {
        Arc::clone(&self.rows.read()[number as usize - 1])
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.read().len()
    }
}

/// What a message did, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What the store holds then.
    pub(super) held: u32,
    /// What the sender learns of itself.
    pub(super) heard: u32,
    /// What a repeat must be answered.
    pub(super) gist: u32,
    /// A repeat need not be answered as before: what it was about is over or forgotten.
    pub(super) excused: bool,
    /// Who got an offer: a bit a driver, then a bit a request.
    pub(super) offered: u8,
    /// Leaderships that it began, and trips that it restored.
    pub(super) spends: [u8; 2],
    /// A promise was broken.
    pub(super) breach: Option<Invariant>,
}

/// One thing that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Send {
    /// The message.
    pub(super) message: u32,
    /// It arrives as it is sent.
    pub(super) at_once: bool,
}

const SHARDS: usize = 64;

/// A map over numbers that many threads fill.
struct Sharded<V>([Mutex<FxHashMap<u64, V>>; SHARDS]);

impl<V: Clone> Sharded<V> {
    fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    fn get_or(&self, key: u64, make: impl FnOnce() -> V) -> V {
        let shard = &self.0[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS];
        if let Some(value) = shard.lock().get(&key) {
            return value.clone();
        }
        // made outside of the lock: twice at worst, and the same both times
        let value = make();
        shard.lock().insert(key, value.clone());
        value
    }
}

/// What was met.
pub(super) struct Atlas {
    pub(super) bounds: Bounds,
    pub(super) held: Numbered<Held>,
    pub(super) messages: Numbered<Message>,
    pub(super) nodes: Numbered<Node>,
    heard: Numbered<Heard>,
    gists: Numbered<Gist>,
    steps: Sharded<Outcome>,
    sends: Sharded<Arc<[Send]>>,
    hearings: Sharded<u32>,
    pub(super) seen: Seen,
    breach: Mutex<Option<Breach>>,
}

impl Atlas {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            held: Numbered::new(),
            messages: Numbered::new(),
            nodes: Numbered::new(),
            heard: Numbered::new(),
            gists: Numbered::new(),
            steps: Sharded::new(),
            sends: Sharded::new(),
            hearings: Sharded::new(),
            seen: Seen::default(),
            breach: Mutex::default(),
        }
    }

    /// A message arrives.
    pub(super) fn step(&self, held: u32, message: u32, moment: Moment) -> Outcome {
        let key = key(held, message, moment);
        self.steps
            .get_or(key, || self.execute(held, message, moment))
    }

    /// What a message is answered, for people.
    pub(super) fn answer(&self, held: u32, message: u32, moment: Moment) -> String {
        let message = self.messages.get(message);
        let taken = self.held.get(held).take(&message, moment, &self.bounds);
        format!("{:?}", taken.answer)
    }

    fn execute(&self, held: u32, message: u32, moment: Moment) -> Outcome {
        let before = self.held.get(held);
        let message = self.messages.get(message);
        let taken = before.take(&message, moment, &self.bounds);
        self.seen.step(&before, &taken, moment);
        if held.is_multiple_of(64) {
            // what this all rests on: the step is pure
            let again = before.take(&message, moment, &self.bounds);
            assert!(again.held == taken.held && again.answer == taken.answer);
        }
        let gist = gist::of(&message, &taken.answer).map_or(0, |gist| self.gists.number(gist).0);
        let excused = gist::excused(&before, &message, &taken.answer, moment);
        let heard = match Heard::of(&message, &taken.answer) {
            Heard::Nothing => 0,
            heard => self.heard.number(heard).0,
        };
        let mut offered = 0;
        for event in &taken.events {
            if event.kind == EventType::Assigned {
                offered |= bits(event.driver_id.as_ref().map(DriverId::as_str), 0);
                offered |= bits(event.request_id.as_ref().map(RequestId::as_str), 2);
            }
        }
        let restored = |event: &&Event| {
            event.kind == EventType::Confirmed && event.reason == Some(Reason::Reconciled)
        };
        let epoch = |held: &Held| held.region.as_ref().map(|region| region.leadership.epoch);
        let led = matches!(taken.answer, Ok(Answer::Acquire(Ok(_))))
            && epoch(&before) != epoch(&taken.held);
        let spends = [
            u8::from(led),
            taken.events.iter().filter(restored).count() as u8,
        ];
        let mut verdict = taken.verdict;
        let (held, new) = self.held.number(taken.held);
        if new && verdict.is_ok() {
            verdict = rest::check(&self.held.get(held), moment, &self.bounds);
        }
        Outcome {
            held,
            heard,
            gist,
            excused,
            offered,
            spends,
            breach: verdict.err().map(|breach| self.broken(breach)),
        }
    }

    /// What may be sent through a node.
    pub(super) fn sends(&self, held: u32, node: u32, n: usize, moment: Moment) -> Arc<[Send]> {
        let key = key(held, node << 1 | n as u32, moment);
        self.sends.get_or(key, || {
            let region = self.held.get(held);
            let beliefs = self.nodes.get(node);
            let all = sends::all(region.region.as_ref(), &beliefs, n, moment, &self.bounds);
            all.into_iter()
                .map(|(kind, message)| Send {
                    message: self.messages.number(message).0,
                    at_once: self.bounds.at_once.contains(&kind),
                })
                .collect()
        })
    }

    /// A node sends a message.
    pub(super) fn sent(&self, node: u32, message: u32) -> u32 {
        let key = u64::from(node) << 32 | u64::from(message);
        self.hearings.get_or(key | 1 << 63, || {
            let command = &self.messages.get(message).command;
            self.nodes.number(self.nodes.get(node).send(command)).0
        })
    }

    /// A node hears an answer.
    pub(super) fn hear(&self, node: u32, heard: u32) -> u32 {
        if heard == 0 {
            return node;
        }
        let key = u64::from(node) << 32 | u64::from(heard);
        self.hearings.get_or(key, || {
            let heard = self.heard.get(heard);
            self.nodes.number(self.nodes.get(node).hear(*heard)).0
        })
    }

    /// Whether a node believes to lead.
    pub(super) fn leads(&self, node: u32) -> bool {
        self.nodes.get(node).leads.is_some()
    }

    /// Keeps the first breach, for people.
    pub(super) fn broken(&self, breach: Breach) -> Invariant {
        let invariant = breach.invariant;
        self.breach.lock().get_or_insert(breach);
        invariant
    }

    /// The first breach.
    pub(super) fn breach(&self) -> Option<Breach> {
        self.breach.lock().clone()
    }

    /// Steps of the shipped code that were executed.
    pub(super) fn executed(&self) -> usize {
        self.steps.0.iter().map(|shard| shard.lock().len()).sum()
    }
}

/// One number for (data, message or node, moment): 28, 24, 6 and 3 bits.
fn key(held: u32, other: u32, moment: Moment) -> u64 {
    assert!(held < 1 << 28 && other < 1 << 24 && moment.tick < 64 && moment.primary < 8);
    u64::from(held) << 33
        | u64::from(other) << 9
        | u64::from(moment.tick) << 3
        | u64::from(moment.primary)
}

/// The bit of a driver or request, which are named by their numbers.
fn bits(id: Option<&str>, from: u8) -> u8 {
    match id.and_then(|id| id.bytes().last()) {
        Some(b'0') => 1 << from,
        Some(b'1') => 2 << from,
        _ => 0,
    }
}
