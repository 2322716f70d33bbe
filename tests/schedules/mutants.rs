//! Bugs that are planted into the store's scripts, each of which the schedules must find: what finds
//! no bug shows nothing.
//!
//! The scripts lie as text in the binary. A bug is put into a copy of it by writing over as many
//! bytes as the right text has, so nothing is compiled for it.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use tokio::runtime::Runtime;

use crate::{faults::Kind, schedule, stage::BINARY};

/// A planted bug.
struct Mutant {
    name: &'static str,
    /// The right text and the wrong one, which is no longer.
    edits: &'static [(&'static str, &'static str)],
    /// Kinds of schedules that must find it.
    found_by: &'static [Kind],
}

const MUTANTS: [Mutant; 10] = [
    Mutant {
        name: "anybody claims for a taken window",
        edits: &[(
            "taken and same_owner(taken.owner, owner) and owner_lives(owner)",
            "taken",
        )],
        found_by: &[
            Kind::Partition,
            Kind::LeaderStopped,
            Kind::SlowLeader,
            Kind::Duplicates,
        ],
    },
    Mutant {
        name: "a driver is given twice",
        edits: &[
            (
                "if found.rec.claim or live(record) then",
                "if live(record) then",
            ),
            (
                "    if found.rec.claim then\n        return 'driver_claimed'\n    end",
                "",
            ),
        ],
        found_by: &[Kind::NodesBlink],
    },
    Mutant {
        name: "a driver is given twice at the claim",
        edits: &[(
            "    if found.rec.claim then\n        return 'driver_claimed'\n    end",
            "",
        )],
        found_by: &[Kind::NodesBlink, Kind::Storm],
    },
    Mutant {
        name: "no quarantine after data loss",
        edits: &[(
            "    if to and now < to then\n        return to",
            "    if to and now < 0 then\n        return to",
        )],
        found_by: &[Kind::RedisRestarted],
    },
    Mutant {
        name: "a new generation is not noticed by the replication id",
        edits: &[("or region.store_id ~= store_id then", "then")],
        found_by: &[Kind::PowerCut, Kind::RedisRestarted],
    },
    Mutant {
        name: "a request that is sent again is a new one",
        edits: &[(
            "if before and before.st ~= 'released' then",
            "if false then",
        )],
        found_by: &[Kind::AnswersLost],
    },
    Mutant {
        name: "a confirm is told twice",
        edits: &[(
            "        if verb == 'confirm' then\n            return claim_answer(key, 'on_trip', trace.c)\n        end",
            "        if verb == 'confirm' then\n            return\n        end",
        )],
        found_by: &[Kind::AnswersLost, Kind::RedisBlinks],
    },
    Mutant {
        name: "the lease of a claim never ends",
        edits: &[("if not claim or now < ends_at(claim) then", "if true then")],
        found_by: &[Kind::NodesBlink],
    },
    Mutant {
        name: "a released rider is forgotten",
        edits: &[(
            "    record.en = collecting()\n    wait_on(request_id, record)",
            "    record.en = collecting()",
        )],
        found_by: &[Kind::NodesBlink],
    },
    Mutant {
        name: "an own window is decided again when it is asked for again",
        edits: &[(
            "if record.done then\n        return ok",
            "if false then\n        return ok",
        )],
        found_by: &[Kind::AnswersLost, Kind::RedisBlinks],
    },
];

#[test]
#[ignore = "takes minutes; tests/soak runs it"]
fn planted_bugs_are_found() {
    let runtime = Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let only = env::var("MUTANT").ok();
    let mut missed = Vec::new();
    for (number, mutant) in MUTANTS.iter().enumerate() {
        if only
            .as_ref()
            .is_some_and(|only| !mutant.name.contains(only))
        {
            continue;
        }
        let binary = mutant.plant(directory.path().join(format!("kheya-{number}")));
        let found = mutant
            .found_by
            .iter()
            .flat_map(|kind| (0..2).map(|round| kind.seed(round)).collect::<Vec<_>>());
        let found = found.into_iter().find_map(|seed| {
            let run = || schedule::run(seed, runtime.handle(), &binary);
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(verdict) => verdict.broken.first().map(|broken| (seed, broken.clone())),
                Err(_) => Some((seed, "a panic".into())),
            }
        });
        match found {
            Some((seed, broken)) => println!("{}: found by {seed}: {broken:.200}", mutant.name),
            None => missed.push(mutant.name),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

impl Mutant {
    /// Writes a binary with the bug.
    fn plant(&self, to: PathBuf) -> PathBuf {
        let mut bytes = fs::read(Path::new(BINARY)).unwrap();
        for (right, wrong) in self.edits {
            let wrong = padded(wrong, right.len());
            let mut planted = 0;
            let mut at = 0;
            while let Some(found) = find(&bytes[at..], right.as_bytes()) {
                at += found;
                bytes[at..at + right.len()].copy_from_slice(&wrong);
                planted += 1;
            }
            assert!(planted > 0, "{}: the right text is not there", self.name);
        }
        fs::write(&to, bytes).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    }
}

/// The text in so many bytes: blanks between words mean nothing to Lua.
fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let blanks = length.checked_sub(bytes.len()).unwrap();
    let last_word = text.rfind(' ').unwrap_or(text.len());
    bytes.splice(last_word..last_word, vec![b' '; blanks]);
    bytes
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let first = part[0];
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == first) {
        at += next;
        if bytes[at..].starts_with(part) {
            return Some(at);
        }
        at += 1;
    }
    None
}
