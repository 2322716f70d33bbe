//! Writes that come too late. They are rare by themselves and must all be refused, so they are made:
//!
//! - whenever the owner of a window claims or seals, the same is tried in the name of owners before
//!   it, at once, while the window is still open to its owner;
//! - when all windows are over, every claim batch and seal that went over the links is sent again.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use kheya_faults::{Command, Fault, Often, RedisServer};
use redis::{Connection, Value};
use serde_json::Value as Json;

use crate::stage::Stage;

/// Writes kept, the newest.
const KEPT: usize = 400;

/// Owners of a region's windows in whose name is written, the newest.
const REMEMBERED: usize = 3;

/// Where the first of the region's keys stands: after `EVALSHA`, the digest, the number of keys.
const FIRST_KEY: usize = 3;

/// What became of writes that came too late.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Late {
    /// In the name of an earlier owner, while the window was another's: refused.
    pub(crate) replaced_refused: usize,
    /// Claim batches of windows that are over: refused.
    pub(crate) claims_refused: usize,
    /// Seals of windows that are over and had another owner in the end: refused.
    pub(crate) seals_refused: usize,
    /// Of another life of the data: not executed.
    pub(crate) of_older_data: usize,
    /// Seals answered with the first report.
    pub(crate) seals_answered: usize,
}

/// Listens to the writes of windows' owners, and writes too late.
pub(crate) struct LateWrites {
    kept: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
    writing: JoinHandle<(Late, Vec<String>)>,
}

impl LateWrites {
    /// Listens on every link of the stage, from now until the links are healed.
    pub(crate) fn listen(stage: &Stage) -> Self {
        let kept: Arc<Mutex<Vec<Vec<Vec<u8>>>>> = Arc::default();
        let (heard, hearing) = channel();
        for proxy in &stage.proxies {
            let (kept, heard) = (kept.clone(), heard.clone());
            // the rule never fires: it is there to see the commands
            proxy.inject_where(Fault::Duplicate, Often::Next(0), move |command| {
                see(command, &kept, &heard);
                false
            });
        }
        let redis = stage.redis.primary();
        let writing = thread::spawn(move || write_for_earlier_owners(&redis, &hearing));
        Self { kept, writing }
    }

    /// Sends again what was kept, now that the links are healed and every window is sealed. Tells in
    /// words what was not refused.
    pub(crate) fn send_again(self, redis: &RedisServer) -> (Late, Vec<String>) {
        let (mut late, mut broken) = self.writing.join().unwrap();
        let mut connection = redis.try_connect().unwrap();
        for arguments in self.kept.lock().unwrap().iter() {
            let seals = contains(arguments.last().unwrap(), b"decisions");
            // a server that began anew does not know the script: nothing was executed
            let Ok(reply) = send(&mut connection, arguments) else {
                continue;
            };
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

fn see(command: &Command, kept: &Mutex<Vec<Vec<Vec<u8>>>>, heard: &Sender<Vec<Vec<u8>>>) {
    let Some(body) = command.arguments().last().filter(|_| command.is("EVALSHA")) else {
        return;
    };
    if contains(body, b"window_seq") && contains(body, b"owner") {
        let arguments = command.arguments().to_vec();
        let _ = heard.send(arguments.clone());
        let mut kept = kept.lock().unwrap();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(arguments);
    }
}

/// Repeats each write in the name of earlier owners of the region's windows.
fn write_for_earlier_owners(
    redis: &RedisServer,
    hearing: &Receiver<Vec<Vec<u8>>>,
) -> (Late, Vec<String>) {
    let mut owners: BTreeMap<Vec<u8>, Vec<(Json, u64)>> = BTreeMap::new();
    let (mut late, mut broken) = (Late::default(), Vec::new());
    let mut connection = None;
    while let Ok(mut arguments) = hearing.recv() {
        let mut command: Json = rmp_serde::from_slice(arguments.last().unwrap()).unwrap();
        let owner = command["owner"].clone();
        let window = command["window_seq"].as_u64().unwrap();
        let earlier = owners.entry(arguments[FIRST_KEY].clone()).or_default();
        for (other, last_window) in earlier.iter() {
            // what was heard may itself be late: then the other one is the owner now
            let follows = *last_window == window && turn(other) > turn(&owner);
            if *other == owner || follows {
                continue;
            }
            command["owner"] = other.clone();
            if command["batch_no"].is_u64() {
                // a number that this owner has not used
                command["batch_no"] = 60.into();
            }
            *arguments.last_mut().unwrap() = rmp_serde::to_vec_named(&command).unwrap();
            let Some(open) = &mut connection else {
                connection = redis.try_connect().ok();
                continue;
            };
            match send(open, &arguments) {
                Ok(reply) if reply["a"]["Err"] == "window_lost" => late.replaced_refused += 1,
                Ok(reply) if reply["c"].is_object() => late.of_older_data += 1,
                // the window is over, and it was this owner who sealed it
                Ok(reply) if is_first_report(&reply, &command) => late.seals_answered += 1,
                Ok(reply) => broken.push(format!("INV-4: {other} wrote for {owner}: {reply}")),
                Err(_) => connection = None,
            }
        }
        earlier.retain(|(other, _)| *other != owner);
        earlier.push((owner, window));
        if earlier.len() > REMEMBERED {
            earlier.remove(0);
        }
    }
    (late, broken)
}

/// When an owner has its turn in a window: the leader first, then take-overs by their numbers.
fn turn(owner: &Json) -> u64 {
    owner["holder"]["fallback"]["take"].as_u64().unwrap_or(0)
}

/// Whether a seal was answered with another report than the one that it brought.
fn is_first_report(reply: &Json, seal: &Json) -> bool {
    let first = &reply["a"]["Ok"]["body"];
    first.is_string() && *first != seal["body"]
}

/// Sends a command; gives its reply.
fn send(connection: &mut Connection, arguments: &[Vec<u8>]) -> redis::RedisResult<Json> {
    let mut command = redis::Cmd::new();
    for argument in arguments {
        command.arg(argument);
    }
    match command.query(connection)? {
        Value::BulkString(reply) => Ok(rmp_serde::from_slice(&reply).unwrap()),
        other => panic!("a script answered {other:?}"),
    }
}

impl Late {
    pub(crate) fn add(&mut self, other: Self) {
        self.replaced_refused += other.replaced_refused;
        self.claims_refused += other.claims_refused;
        self.seals_refused += other.seals_refused;
        self.of_older_data += other.of_older_data;
        self.seals_answered += other.seals_answered;
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|bytes| bytes == part)
}
