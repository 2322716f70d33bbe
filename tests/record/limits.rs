//! Queues, disks and limits.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use kheya::{
    domain::{DurationMs, RegionId, RequestId},
    protocol::{Answer, CancelRefusal, CancelRequest, Command, Intake, IntakeAnswer, RequestDraft},
    record::{Entry, GapCause, LogReader, RecordTrouble, Recorder, verify},
    store::ManualClock,
};
use tempfile::tempdir;

use super::city::{City, START, entries, options, segments};

fn region(name: &str) -> RegionId {
    RegionId::new(name).unwrap()
}

fn cancel(n: usize) -> (Command, Answer) {
    let request_id = RequestId::new(&format!("r{n}")).unwrap();
    (
        Command::Cancel(CancelRequest { request_id }),
        Answer::Cancel(Err(CancelRefusal::UnknownRequest)),
    )
}

/// A call that is heavy to write.
fn heavy() -> (Command, Answer) {
    let place = kheya::domain::Place::new(1.0, 2.0).unwrap();
    let requests =
        (0..20_000).map(|n| RequestDraft::at(RequestId::new(&format!("r{n}")).unwrap(), place));
    (
        Command::Intake(Intake {
            requests: requests.collect(),
        }),
        Answer::Intake(Ok(IntakeAnswer::default())),
    )
}

#[test]
fn a_full_queue_drops_counts_and_leaves_a_gap() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let mut few = options(dir.path(), clock);
    few.queue_bytes = 4_096;
    let recorder = Recorder::open(few).unwrap();
    let (noisy, quiet) = (region("noisy"), region("quiet"));
    let (command, answer) = cancel(1);
    let (big, big_answer) = heavy();
    let mut sent = 0;
    for _ in 0..200 {
        // the writer is kept busy with one heavy entry, and so the queue fills
        recorder.command(&noisy, START, &big, &big_answer);
        for _ in 0..20 {
            recorder.command(&noisy, START, &command, &answer);
        }
        sent += 21;
        if recorder.stats().dropped > 30 {
            break;
        }
    }
    recorder.flush();
    // there is room again
    recorder.command(&quiet, START, &command, &answer);
    recorder.command(&noisy, START, &command, &answer);
    recorder.close();
    let dropped = recorder.stats().dropped;
    assert!(dropped > 30, "the queue never filled");

    let (mut kept, mut lost) = (0, 0);
    for entry in entries(dir.path()) {
        match entry {
            Entry::Command(entry) => kept += u64::from(entry.region == noisy),
            Entry::Gap(gap) => {
                assert_eq!((&gap.region, gap.cause), (&noisy, GapCause::QueueFull));
                lost += gap.lost.commands;
            }
            _ => {}
        }
    }
    assert_eq!(lost, dropped);
    assert_eq!(kept + lost, sent + 1);
    let report = verify(&[dir.path().to_owned()], &|_, _| ()).unwrap();
    assert_eq!(report.lost.commands, dropped);
    assert!(report.holds());
    // what comes after the end is dropped, not waited for
    recorder.command(&quiet, START, &command, &answer);
    recorder.flush();
    assert_eq!(recorder.stats().dropped, dropped + 1);
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                bytes_in(&entry.path())
            } else {
                metadata.len()
            }
        })
        .sum()
}

#[tokio::test]
async fn rotation_and_the_limit_leave_a_record_that_is_read_and_verified() {
    let dir = tempdir().unwrap();
    // what an earlier run of the node left is deleted first; another node's is not touched
    let old = dir.path().join("node%3a1-20250101T000000000Z");
    let other = dir.path().join("node%3a2-20250101T000000000Z");
    for run in [&old, &other] {
        fs::create_dir(run).unwrap();
        fs::write(run.join("segment-00000001.jsonl.zst"), vec![0; 50_000]).unwrap();
    }
    let clock = Arc::new(ManualClock::at(START));
    let mut small = options(dir.path(), clock.clone());
    small.max_bytes = Some(100_000);
    let mut city = City::begin(small, clock, 5, 120, 6).await;
    for _ in 0..60 {
        city.window().await;
        city.recorder.flush();
        let bytes = bytes_in(dir.path()) - 50_000;
        assert!(bytes <= 100_000, "{bytes} bytes");
    }
    city.recorder.close();
    assert!(!old.exists() && other.exists());

    let stats = city.recorder.stats();
    assert!(stats.segments > 5, "{stats:?}");
    assert!(stats.deleted > 2, "{stats:?}");
    assert_eq!((stats.dropped, stats.disk_errors), (0, 0));
    let run = city.recorder.run_directory().to_owned();
    let kept = segments(&run);
    assert!(kept.len() > 2 && (kept.len() as u64) < stats.segments);
    let report = verify(&[run], &|_, _| ()).unwrap();
    assert_eq!(report.differences, []);
    assert!(report.decisions.total() > 5);
    assert_eq!(
        (report.read.missing.len(), report.read.unended_runs),
        (0, 0)
    );
    // every segment stands for itself
    for segment in kept {
        assert!(verify(&[segment], &|_, _| ()).unwrap().holds());
    }
}

#[test]
fn a_segment_ends_at_its_age_and_one_taken_away_is_missed() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let mut young = options(dir.path(), clock);
    young.segment_age = Duration::ZERO;
    let recorder = Recorder::open(young).unwrap();
    for n in 0..4 {
        let (command, answer) = cancel(n);
        recorder.command(
            &region("dhaka"),
            START + DurationMs::new(n as i64),
            &command,
            &answer,
        );
        recorder.flush();
    }
    recorder.close();
    let files = segments(recorder.run_directory());
    assert!(files.len() >= 4);
    fs::remove_file(&files[1]).unwrap();
    let mut reader = LogReader::open(&[dir.path().to_owned()]).unwrap();
    assert!(reader.by_ref().all(|entry| entry.is_ok()));
    let missing = &reader.account().missing;
    assert_eq!((missing.len(), missing[0].blocks), (1, 1));
    assert_eq!(missing[0].file, files[2]);
}

#[test]
fn a_disk_that_refuses_is_told_and_leaves_a_gap() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let mut watched = options(dir.path(), clock);
    watched.segment_age = Duration::ZERO;
    let heard: Arc<Mutex<Vec<RecordTrouble>>> = Arc::default();
    let hears = Arc::clone(&heard);
    watched.on_trouble = Some(Arc::new(move |trouble: &RecordTrouble| {
        hears.lock().unwrap().push(trouble.clone());
    }));
    let recorder = Recorder::open(watched).unwrap();
    let run = recorder.run_directory().to_owned();
    let aside = dir.path().join("aside");
    let say = |n: usize| {
        let (command, answer) = cancel(n);
        recorder.command(&region("dhaka"), START, &command, &answer);
        recorder.flush();
    };
    say(1);
    // no segment can be begun while the directory is away
    fs::rename(&run, &aside).unwrap();
    say(2);
    say(3);
    fs::rename(&aside, &run).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    say(4);
    recorder.close();

    let stats = recorder.stats();
    assert_eq!(stats.dropped, 2, "{stats:?}");
    assert!(stats.disk_errors >= 1);
    assert!(matches!(
        heard.lock().unwrap()[0],
        RecordTrouble::Disk { .. }
    ));
    let gaps: Vec<_> = entries(&run)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Gap(gap) => Some((gap.cause, gap.lost.commands)),
            _ => None,
        })
        .collect();
    assert_eq!(gaps, [(GapCause::Disk, 2)]);
}

#[test]
fn a_limit_too_small_for_a_record_is_refused() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let mut tiny = options(dir.path(), clock);
    tiny.max_bytes = Some(1_000);
    let error = Recorder::open(tiny).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
