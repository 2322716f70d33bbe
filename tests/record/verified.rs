//! Deciding a record again.

use std::{fs, path::Path};

use kheya::domain::WindowSeq;
use kheya::record::{Step, VerifyReport, verify};
use tempfile::tempdir;

use super::city::{recorded, segments};

fn verified(path: &Path) -> VerifyReport {
    verify(&[path.to_owned()], &|_, _| ()).unwrap()
}

#[tokio::test]
async fn a_recorded_region_is_decided_the_same_again() {
    let dir = tempdir().unwrap();
    let city = recorded(dir.path(), 64).await;
    assert!(
        city.repairs > 3,
        "{} repairs are too few to tell",
        city.repairs
    );
    assert_eq!(city.recorder.stats().dropped, 0);

    let report = verified(dir.path());
    assert_eq!(report.differences, []);
    assert!(report.holds());
    assert_eq!(report.decisions.total(), city.windows as u64);
    assert_eq!(report.windows.fallback, 8);
    assert!(report.decisions.checked > 4, "windows without a proof");
    assert_eq!(report.decisions.different, 0);
    assert_eq!(report.repairs.total(), city.repairs as u64);
    assert!(report.repairs.identical > 3);
    assert_eq!((report.read.runs, report.read.unended_runs), (1, 0));
    assert!(report.pings > 1_000 && report.commands > 200);
}

/// Rewrites the lines of a segment, as one plain block after the other.
fn rewrite(segment: &Path, change: &mut dyn FnMut(&mut serde_json::Value)) {
    let text = zstd::stream::decode_all(&fs::read(segment).unwrap()[..]).unwrap();
    let mut lines = Vec::new();
    for line in text.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let mut value: serde_json::Value = serde_json::from_slice(line).unwrap();
        change(&mut value);
        lines.extend(serde_json::to_vec(&value).unwrap());
        lines.push(b'\n');
    }
    let frame = zstd::bulk::compress(&lines, 1).unwrap();
    let mut block = b"\x5b\x2a\x4d\x18\x18\0\0\0KLOG".to_vec();
    block.extend(1_u64.to_le_bytes());
    block.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
    block.extend(xxhash_rust::xxh3::xxh3_64_with_seed(&frame, 1).to_le_bytes());
    block.extend(frame);
    fs::write(segment, block).unwrap();
}

/// Changes the n-th window by `change`, which says whether it did.
fn planted(
    windows: usize,
    run: &Path,
    change: &dyn Fn(&mut serde_json::Value) -> bool,
) -> (VerifyReport, u64) {
    let segment = segments(run).remove(0);
    let mut seen = 0;
    let mut changed = None;
    rewrite(&segment, &mut |line| {
        let Some(window) = line.get_mut("window") else {
            return;
        };
        seen += 1;
        if changed.is_none() && seen > windows && change(window) {
            changed = window["window_seq"].as_u64();
        }
    });
    let changed = changed.expect("a window that can be changed");
    (verified(run), changed)
}

type Change<'a> = &'a dyn Fn(&mut serde_json::Value) -> bool;

#[tokio::test]
async fn one_planted_bit_is_found_and_named() {
    let dir = tempdir().unwrap();
    let city = recorded(dir.path(), 24).await;
    let original = segments(city.recorder.run_directory()).remove(0);
    let kept = fs::read(&original).unwrap();
    let run = city.recorder.run_directory();

    // rewriting alone changes nothing
    rewrite(&original, &mut |_| ());
    assert!(verified(run).holds());

    let flip = |number: &mut serde_json::Value| {
        let bits = number.as_f64().unwrap().to_bits() ^ 1;
        *number = f64::from_bits(bits).into();
    };
    let is_batch = |window: &serde_json::Value| {
        window["source"] == "batch" && window["decision"]["solve"]["status"] == "optimal"
    };
    let pair = |field: &'static str, cut: bool| {
        move |window: &mut serde_json::Value| {
            let fits = if cut {
                window["decision"]["solve"]["status"] == "feasible"
            } else {
                is_batch(window)
            };
            let first = window["decision"]["assignments"].get_mut(0);
            match first {
                Some(first) if fits => {
                    flip(&mut first[field]);
                    true
                }
                _ => false,
            }
        }
    };
    let (eta, cost, cut) = (
        pair("eta_s", false),
        pair("cost_s", false),
        pair("eta_s", true),
    );
    let reason = |window: &mut serde_json::Value| {
        let fits = is_batch(window);
        match window["decision"]["unmatched"].get_mut(0) {
            Some(first) if fits => {
                first["reason"] = "cooldown".into();
                true
            }
            _ => false,
        }
    };
    let bound = |window: &mut serde_json::Value| {
        let cut = window["decision"]["solve"]["status"] == "feasible";
        if cut {
            window["decision"]["solve"]["dual_bound"] = 900_000_000.into();
        }
        cut
    };
    let repaired = |window: &mut serde_json::Value| {
        let first = window
            .get_mut("repaired")
            .and_then(|repaired| repaired["assignments"].get_mut(0));
        first.is_some_and(|first| {
            flip(&mut first["eta_s"]);
            true
        })
    };
    let changes: [(&str, Change<'_>, Step); 6] = [
        ("eta_s", &eta, Step::Decision),
        ("cost_s", &cost, Step::Decision),
        ("eta_s", &cut, Step::Decision),
        ("unmatched", &reason, Step::Decision),
        ("bound", &bound, Step::Decision),
        ("eta_s", &repaired, Step::Repair),
    ];
    for (word, change, step) in changes {
        fs::write(&original, &kept).unwrap();
        let (report, seq) = planted(1, run, change);
        assert_eq!(
            report.differences.len(),
            1,
            "{word}: {:?}",
            report.differences
        );
        let found = &report.differences[0];
        assert_eq!(found.window_seq.map(WindowSeq::get), Some(seq), "{word}");
        assert_eq!(found.step, step);
        assert!(found.detail.contains(word), "{word}: {}", found.detail);
        assert!(
            found.window.starts_with("dhaka window "),
            "{}",
            found.window
        );
    }
}
