//! The pure parts know no clock, network, thread or randomness of their own.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a pure file may not name, outside its tests.
const IMPURE: [&str; 14] = [
    "tokio",
    "redis",
    "axum",
    "std::time",
    "SystemTime",
    "Instant::now",
    "std::thread",
    "std::net",
    "std::fs",
    "std::env",
    "thread_rng",
    "rand::",
    "HashMap",
    "HashSet",
];

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn protocol_and_domain_are_pure() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for pure in ["protocol", "domain"] {
        rust_files(&src.join(pure), &mut files);
    }
    assert!(files.len() > 20, "the pure files were not found: {files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        for impure in IMPURE {
            assert!(!code.contains(impure), "{} names {impure}", file.display());
        }
    }
}
