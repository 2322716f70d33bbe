//! Writes that come too late: every claim batch and seal that a node sends is kept, and sent to the
//! store once more when its window is long over.

use std::sync::{Arc, Mutex};

use kheya_faults::{Command, Fault, Often, RedisServer};
use redis::Value;
use serde_json::Value as Json;

use crate::stage::Stage;

/// Writes kept, the newest.
const KEPT: usize = 400;

/// The writes of windows' owners, as they went over the links.
#[derive(Clone, Default)]
pub(crate) struct LateWrites(Arc<Mutex<Vec<Vec<Vec<u8>>>>>);

/// What became of writes that came too late.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Late {
    /// Claim batches refused because the window is over or has another owner.
    pub(crate) claims_refused: usize,
    /// Seals refused for the same.
    pub(crate) seals_refused: usize,
    /// Writes of another life of the data, not executed.
    pub(crate) of_older_data: usize,
    /// Seals answered with the first report.
    pub(crate) seals_answered: usize,
}

impl LateWrites {
    /// Listens on every link of the stage, from now until the links are healed.
    pub(crate) fn listen(stage: &Stage) -> Self {
        let kept = Self::default();
        for proxy in &stage.proxies {
            let kept = kept.clone();
            // the rule never fires: it is there to see the commands
            proxy.inject_where(Fault::Duplicate, Often::Next(0), move |command| {
                kept.see(command);
                false
            });
        }
        kept
    }

    fn see(&self, command: &Command) {
        let body = command.arguments().last();
        let owned = |name: &[u8]| {
            body.is_some_and(|body| body.windows(name.len()).any(|bytes| bytes == name))
        };
        if command.is("EVALSHA") && owned(b"window_seq") && owned(b"owner") {
            let mut kept = self.0.lock().unwrap();
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.push(command.arguments().to_vec());
        }
    }

    /// Sends all of them again, now that every window of theirs is sealed. Tells in words what was
    /// not refused.
    pub(crate) fn send_again(&self, redis: &RedisServer) -> (Late, Vec<String>) {
        let mut late = Late::default();
        let mut broken = Vec::new();
        let mut connection = redis.try_connect().unwrap();
        for arguments in self.0.lock().unwrap().iter() {
            let mut command = redis::Cmd::new();
            for argument in arguments {
                command.arg(argument);
            }
            let seals = contains(arguments.last().unwrap(), b"decisions");
            let reply: Value = match command.query(&mut connection) {
                Ok(reply) => reply,
                // the server that knew the script is gone
                Err(_) => continue,
            };
            let Value::BulkString(reply) = reply else {
                broken.push(format!("a late write was answered {reply:?}"));
                continue;
            };
            let reply: Json = rmp_serde::from_slice(&reply).unwrap();
            if reply["a"]["Err"] == "window_lost" {
                if seals {
                    late.seals_refused += 1;
                } else {
                    late.claims_refused += 1;
                }
            } else if reply["c"].is_object() {
                late.of_older_data += 1;
            } else if seals && reply["a"]["Ok"].is_object() {
                late.seals_answered += 1;
            } else {
                broken.push(format!("INV-4: a late write was answered {reply}"));
            }
        }
        (late, broken)
    }
}

impl Late {
    pub(crate) fn add(&mut self, other: Self) {
        self.claims_refused += other.claims_refused;
        self.seals_refused += other.seals_refused;
        self.of_older_data += other.of_older_data;
        self.seals_answered += other.seals_answered;
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|bytes| bytes == part)
}
