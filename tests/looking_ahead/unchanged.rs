//! Where looking ahead is off, every byte is what it was before it came.

use std::fmt::Write as _;

use kheya::decision::{read_window, snapshot_hash, write_window};
use sha2::{Digest as _, Sha256};
use tempfile::tempdir;

use crate::command_line::run;

/// A window as it was written before windows could look ahead.
const BEFORE: &str = include_str!("before.json");

/// SHA-256 of the files of a replay before windows could look ahead.
const ASSIGNMENTS_AND_WINDOWS: [&str; 2] = [
    "b1516143a7efcbfadd439cd9471894ca556a6edd7a8fcaa855c7d22d04c1172e",
    "5c39468026e97abb1fc8e4ef8f718ae00cf476a83ac133644b28337e0c7e1281",
];

#[test]
fn a_snapshot_keeps_its_bytes_and_its_hash() {
    let (snapshot, _) = read_window(BEFORE.trim_end().as_bytes()).unwrap();
    assert_eq!(write_window(&snapshot).unwrap(), BEFORE.trim_end());
    let hash = xxhash_rust::xxh3::xxh3_128(BEFORE.trim_end().as_bytes());
    assert_eq!(&*snapshot_hash(&snapshot), format!("{hash:032x}"));
}

#[test]
fn a_replay_without_looking_ahead_gives_the_same_files() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let city = [
        "generate",
        "--hours",
        "1",
        "--requests-per-hour",
        "3000",
        "--drivers",
        "300",
    ];
    let made = run(city
        .iter()
        .copied()
        .chain(["--seed", "7", "--out", &path("city")]));
    assert_eq!(made.code, Some(0), "{made:?}");
    let (requests, drivers) = (path("city/requests.csv"), path("city/drivers.csv"));
    let replay = |out: &str, more: &[&str]| {
        let out = path(out);
        let args = [
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--policy",
            "all",
            "--out",
            &out,
        ];
        run(args.iter().chain(more)).done();
        ["assignments.csv", "windows.csv"].map(|name| {
            let bytes = std::fs::read(std::path::Path::new(&out).join(name)).unwrap();
            let mut text = String::new();
            for byte in Sha256::digest(bytes) {
                let _ = write!(text, "{byte:02x}");
            }
            text
        })
    };
    let off = replay("off", &[]);
    assert_eq!(off, ASSIGNMENTS_AND_WINDOWS);
    assert_eq!(
        replay("zero", &["--plan-ahead", "0s", "--demand-ahead", "0s"]),
        off
    );
    assert_ne!(replay("on", &["--plan-ahead", "60s"]), off);
}
