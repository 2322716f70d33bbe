//! Architecture invariant: the pure parts know no clock, network, store, file or chance of their own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The directories of `src/` that must stay pure.
const PURE: [&str; 7] = [
    "domain",
    "supply",
    "eta",
    "candidates",
    "demand",
    "decision",
    "protocol",
];

/// Words of code that bring the outside in.
const OUTSIDE: [&str; 27] = [
    // their order differs from run to run
    "HashMap",
    "HashSet",
    "crate::window",
    "crate::http",
    "crate::leadership",
    "crate::record",
    "crate::telemetry",
    "tokio",
    "redis",
    "axum",
    "hyper",
    "std::time",
    "Instant",
    "SystemTime",
    "thread_rng",
    "rand::rng",
    "RandomState",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "crate::store",
    "crate::cli",
    "crate::replay",
    "println!",
    "eprintln!",
];

/// Lines of a source, up to its tests, that bring the outside in, with the word that does.
fn breaches(source: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut time_from_std = false;
    let mut lines = source.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        // tests stand last in a file and may do what they like
        let opens_tests = |next: &(usize, &str)| next.1.starts_with("mod tests");
        if line == "#[cfg(test)]" && lines.peek().is_some_and(opens_tests) {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        found.extend(
            OUTSIDE
                .iter()
                .filter(|word| has_word(code, word))
                .map(|w| (number + 1, *w)),
        );
        // `use std::{ …, time::… }` over several lines
        time_from_std |= code.trim_start().starts_with("use std::{");
        if time_from_std
            && ["time::", "fs::", "env::", "net::"]
                .iter()
                .any(|m| has_word(code, m))
        {
            found.push((number + 1, "std"));
        }
        time_from_std &= !code.contains(';');
    }
    found
}

/// Whether `word` stands in `code` on its own, not as a part of a longer name.
fn has_word(code: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let goes_on = word.ends_with(in_name) && after.is_some_and(in_name);
        !goes_on && !before.is_some_and(in_name)
    })
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn the_pure_parts_bring_nothing_in_from_outside() {
    for part in PURE {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(part);
        let files = sources(&directory);
        assert!(files.len() >= 2, "{part}: the sources were not found");
        for file in files {
            let found = breaches(&fs::read_to_string(&file).unwrap());
            assert_eq!(found, [], "{}", file.display());
        }
    }
}

#[test]
fn the_check_sees_what_is_planted() {
    for planted in [
        "use tokio::sync::mpsc;",
        "use redis::Client;",
        "    let now = std::time::SystemTime::now();",
        "use std::{sync::Arc, time::Duration};",
        "use std::{\n    sync::Arc,\n    time::Duration,\n};",
        "    let started = Instant::now();",
        "    let x: f64 = rand::rng().random();",
        "let mut chance = rand::thread_rng();",
        "use std::fs::File;",
        "use crate::store::MemoryStore;",
        "fn f() {} // fine\nuse axum::Router;",
        "use hyper::Body; // not fine",
        "eprintln!(\"here\");",
        "#[cfg(test)]\nuse crate::Other;\nuse std::time::Instant;",
    ] {
        let source = format!("//! A module.\n\nuse std::sync::Arc;\n{planted}\n");
        assert!(!breaches(&source).is_empty(), "{planted} was not seen");
    }
}

#[test]
fn the_check_lets_pass_what_is_pure() {
    for pure in [
        "// an Instant of std::time has no place here",
        "/// See tokio for the other half.",
        "use crate::domain::{DurationMs, UnixMs};",
        "let redispatch_s = config.redispatch_s;",
        "fn instants(prefs::x: u8) {}",
        "use std::{collections::BTreeMap, sync::Arc};",
        "#[cfg(test)]\nmod tests { use std::time::Instant; }",
    ] {
        assert_eq!(breaches(pure), [], "{pure}");
    }
}
