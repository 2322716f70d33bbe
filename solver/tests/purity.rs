//! Architecture invariant: the crate is pure. Only `budget.rs` reads a clock; nothing does I/O of
//! its own, draws random numbers, or knows the service around it.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    paths
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
fn only_the_budget_reads_a_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&root);
    assert!(files.len() > 10, "the sources were not found");
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable source");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        let mut banned = vec![
            "tokio",
            "redis",
            "axum",
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "println!",
            "rand::",
            "thread_rng",
            "RandomState",
            "HashMap",
            "HashSet",
        ];
        if file.file_name().is_none_or(|name| name != "budget.rs") {
            banned.extend(["std::time", "Instant", "SystemTime"]);
        }
        for word in banned {
            assert!(!code.contains(word), "{} mentions {word}", file.display());
        }
    }
}
