//! Which commands meet a fault, and what was injected.

use std::{fmt, sync::Mutex, time::Duration};

use super::resp::Command;

/// What can happen to one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the server has the command: it is not applied, and the client
    /// does not know.
    LoseRequest,
    /// The server applies the command and answers, and the connection breaks before the client has
    /// the answer.
    LoseAnswer,
    /// The server gets the command twice in a row; the client gets the first answer.
    Duplicate,
    /// The server gets the command again after so long, over another connection, when the client has
    /// long gone on. It must need no login and no other database.
    DuplicateLate(Duration),
}

/// How often a fault is injected into the commands that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// Into the next ones only.
    Next(u64),
    /// Into each with the probability of one in so many.
    OneIn(u64),
}

/// How often each fault was really injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Injected {
    /// Messages that came late, in either direction.
    pub delayed: u64,
    /// Messages that had to wait in a black hole.
    pub held: u64,
    /// Commands that did not reach the server.
    pub lost_requests: u64,
    /// Answers that did not reach the client, though the server had given them.
    pub lost_answers: u64,
    /// Commands that the server answered twice in a row.
    pub duplicated: u64,
    /// Commands that the server answered once more later.
    pub duplicated_late: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Open connections that were broken by [`super::Proxy::cut`] or a switch of the server.
    pub cut: u64,
}

impl Injected {
    /// All together.
    pub fn total(&self) -> u64 {
        self.delayed
            + self.held
            + self.lost_requests
            + self.lost_answers
            + self.duplicated
            + self.duplicated_late
            + self.refused
            + self.cut
    }
}

type Matches = Box<dyn Fn(&Command) -> bool + Send + Sync>;

struct Rule {
    fault: Fault,
    often: Often,
    matches: Matches,
}

/// The rules in force; the first that applies to a command wins.
pub(super) struct Faults {
    seed: u64,
    rules: Mutex<Vec<Rule>>,
    injected: Mutex<Injected>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            rules: Mutex::default(),
            injected: Mutex::default(),
        }
    }

    pub(super) fn add(&self, fault: Fault, often: Often, matches: Matches) {
        self.rules.lock().unwrap().push(Rule {
            fault,
            often,
            matches,
        });
    }

    pub(super) fn clear(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// What happens to this command.
    pub(super) fn drawn(&self, command: &Command, chance: &mut Chance) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        rules.iter_mut().find_map(|rule| {
            if !(rule.matches)(command) {
                return None;
            }
            let fires = match &mut rule.often {
                Often::Next(left) => {
                    let fires = *left > 0;
                    *left = left.saturating_sub(1);
                    fires
                }
                Often::OneIn(many) => chance.next().is_multiple_of(*many),
            };
            fires.then_some(rule.fault)
        })
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Injected)) {
        count(&mut self.injected.lock().unwrap());
    }

    pub(super) fn injected(&self) -> Injected {
        *self.injected.lock().unwrap()
    }

    /// The numbers of one direction of one connection.
    pub(super) fn chance(&self, connection: u64, stream: u64) -> Chance {
        let mut mixed = Chance(self.seed);
        mixed.0 ^= mixed.next() ^ (connection * 2 + stream);
        Chance(mixed.next())
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults(seed {}, {:?})", self.seed, self.injected())
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): numbers that are the same for the same seed.
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
