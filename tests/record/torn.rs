//! What a killed process or a damaged disk leaves.

use std::{fs, path::Path, sync::Arc, time::Duration};

use kheya::{
    domain::{DriverId, DurationMs, NodeId, Place, RegionId, RequestId},
    protocol::{Answer, CancelRefusal, CancelRequest, Command, Ping, PingAnswer, Pings},
    record::{Entry, LogError, LogReader, ReadAccount, RecordOptions, Recorder, is_record},
    store::{Clock, ManualClock, SystemClock},
};
use tempfile::tempdir;

use super::city::{START, options, segments};

fn cancel(n: usize) -> (Command, Answer) {
    let request_id = RequestId::new(&format!("r{n}")).unwrap();
    (
        Command::Cancel(CancelRequest { request_id }),
        Answer::Cancel(Err(CancelRefusal::UnknownRequest)),
    )
}

/// A run of some blocks in one segment, each of some entries, and its end.
fn small_run(directory: &Path, blocks: usize) -> std::path::PathBuf {
    let clock = Arc::new(ManualClock::at(START));
    let recorder = Recorder::open(options(directory, clock)).unwrap();
    let region = RegionId::new("dhaka").unwrap();
    for block in 0..blocks {
        for n in 0..3 {
            let (command, answer) = cancel(10 * block + n);
            recorder.command(&region, START, &command, &answer);
        }
        let ping = Ping::at(
            DriverId::new("d1").unwrap(),
            Place::new(1.0, 2.0).unwrap(),
            START,
        );
        let answer = PingAnswer {
            accepted: 1,
            ..PingAnswer::default()
        };
        recorder.command(
            &region,
            START,
            &Command::Ping(Pings { pings: vec![ping] }),
            &Answer::Ping(answer),
        );
        recorder.flush();
    }
    recorder.close();
    recorder.run_directory().to_owned()
}

fn read(path: &Path) -> (Vec<Entry>, Option<LogError>, ReadAccount) {
    let mut reader = LogReader::open(&[path.to_owned()]).unwrap();
    let (mut entries, mut error) = (Vec::new(), None);
    for entry in reader.by_ref() {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(found) => error = Some(found),
        }
    }
    (entries, error, reader.account().clone())
}

#[test]
fn every_cut_of_the_last_segment_reads_a_prefix_and_counts_the_tail() {
    let dir = tempdir().unwrap();
    let run = small_run(dir.path(), 4);
    let segment = segments(&run).remove(0);
    let bytes = fs::read(&segment).unwrap();
    let (whole, error, account) = read(&run);
    assert!(error.is_none() && account.torn.is_empty());
    assert_eq!(account.unended_runs, 0);

    let (mut torn, mut clean) = (0, 0);
    for cut in (0..bytes.len()).rev() {
        fs::write(&segment, &bytes[..cut]).unwrap();
        let (entries, error, account) = read(&run);
        assert!(error.is_none(), "cut at {cut}: {error:?}");
        assert!(whole.starts_with(&entries), "cut at {cut}");
        assert!(entries.len() < whole.len());
        assert_eq!(account.unended_runs, 1);
        if let Some(tail) = account.torn.first() {
            torn += 1;
            assert_eq!(tail.offset + tail.bytes, cut as u64);
            assert_eq!(tail.file, segment);
        } else {
            clean += 1;
        }
    }
    // header; 4 blocks; the end: cuts between blocks and at 0 leave no torn tail
    assert_eq!(clean, 6);
    assert_eq!(torn, bytes.len() - 6);
}

#[test]
fn a_flipped_byte_in_the_middle_is_named_with_file_and_offset() {
    let dir = tempdir().unwrap();
    let run = small_run(dir.path(), 3);
    let segment = segments(&run).remove(0);
    let bytes = fs::read(&segment).unwrap();
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(b"\x5b\x2a\x4d\x18"))
        .collect();
    assert_eq!(starts.len(), 5);
    for at in (starts[1]..starts[3]).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&segment, damaged).unwrap();
        let (entries, error, _) = read(&run);
        let block = starts.iter().rposition(|&start| start <= at).unwrap();
        let Some(LogError::Damaged { file, offset, .. }) = error else {
            panic!("byte {at}: {error:?}");
        };
        assert_eq!(
            (file, offset),
            (segment.clone(), starts[block] as u64),
            "byte {at}"
        );
        assert_eq!(entries.len(), 1 + 4 * (block - 1));
    }
}

#[test]
fn a_block_taken_out_or_put_twice_is_damage() {
    let dir = tempdir().unwrap();
    let run = small_run(dir.path(), 3);
    let segment = segments(&run).remove(0);
    let bytes = fs::read(&segment).unwrap();
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(b"\x5b\x2a\x4d\x18"))
        .collect();
    let (a, b) = (starts[1], starts[2]);
    for changed in [
        [&bytes[..a], &bytes[b..]].concat(),
        [&bytes[..b], &bytes[a..]].concat(),
    ] {
        fs::write(&segment, changed).unwrap();
        let (_, error, _) = read(&run);
        assert!(matches!(error, Some(LogError::Damaged { .. })), "{error:?}");
    }
}

#[test]
fn a_restart_after_a_kill_writes_another_run_and_both_are_read() {
    let dir = tempdir().unwrap();
    let first = small_run(dir.path(), 2);
    let segment = segments(&first).remove(0);
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 3]).unwrap();
    // the same millisecond: the next run still has a directory of its own
    let second = small_run(dir.path(), 2);
    assert_ne!(first, second);
    let (entries, error, account) = read(dir.path());
    assert!(error.is_none());
    assert_eq!(
        (account.runs, account.unended_runs, account.torn.len()),
        (2, 1, 1)
    );
    assert_eq!(entries.len(), 2 * (1 + 8) + 1);
}

#[test]
fn a_record_is_told_by_its_content() {
    let dir = tempdir().unwrap();
    let run = small_run(dir.path(), 1);
    let segment = segments(&run).remove(0);
    let renamed = dir.path().join("yesterday");
    fs::copy(&segment, &renamed).unwrap();
    for record in [dir.path(), &run, &segment, &renamed] {
        assert!(is_record(record), "{}", record.display());
    }
    let other = tempdir().unwrap();
    let csv = other.path().join("segment.csv");
    fs::write(&csv, "id\n").unwrap();
    for other in [other.path(), &csv, &other.path().join("absent")] {
        assert!(!is_record(other), "{}", other.display());
    }
    let (entries, error, _) = read(&renamed);
    assert!(error.is_none());
    assert_eq!(entries.len(), 1 + 4 + 1);
}

#[test]
fn another_format_is_refused_by_name() {
    let dir = tempdir().unwrap();
    let run = small_run(dir.path(), 1);
    let segment = segments(&run).remove(0);
    let text = zstd::stream::decode_all(&fs::read(&segment).unwrap()[..]).unwrap();
    let text = String::from_utf8(text)
        .unwrap()
        .replace("kheya-log/1", "kheya-log/2");
    let frame = zstd::bulk::compress(text.as_bytes(), 1).unwrap();
    let mut block = b"\x5b\x2a\x4d\x18\x18\0\0\0KLOG".to_vec();
    block.extend(1_u64.to_le_bytes());
    block.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
    block.extend(xxhash_rust::xxh3::xxh3_64_with_seed(&frame, 1).to_le_bytes());
    block.extend(frame);
    fs::write(&segment, block).unwrap();
    let (_, error, _) = read(&run);
    assert!(matches!(error, Some(LogError::Format { format, .. }) if format == "kheya-log/2"));
}

/// Names the directory to the process that is to be killed.
const VICTIM: &str = "KHEYA_TEST_RECORD_UNTIL_KILLED";

#[test]
fn a_killed_process_loses_a_second_at_most_and_leaves_a_readable_record() {
    if let Some(directory) = std::env::var_os(VICTIM) {
        record_until_killed(Path::new(&directory));
    }
    let dir = tempdir().unwrap();
    let name = "torn::a_killed_process_loses_a_second_at_most_and_leaves_a_readable_record";
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(VICTIM, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    let killed = SystemClock.now().ms();
    victim.kill().unwrap();
    victim.wait().unwrap();

    let (entries, error, account) = read(dir.path());
    assert!(error.is_none(), "{error:?}");
    assert_eq!((account.runs, account.unended_runs), (1, 1));
    assert!(account.torn.len() <= 1);
    let times: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Command(entry) => Some(entry.at_ms),
            _ => None,
        })
        .collect();
    assert!(times.len() > 100 && times.is_sorted());
    // half a second by design; the rest is for a busy machine
    let lost = killed - *times.last().unwrap();
    assert!(lost <= DurationMs::new(1_500), "{lost} ms are missing");
}

fn record_until_killed(directory: &Path) -> ! {
    let options = RecordOptions::new(directory.to_owned(), NodeId::new("victim").unwrap());
    let recorder = Recorder::open(options).unwrap();
    let region = RegionId::new("dhaka").unwrap();
    for n in 0.. {
        let (command, answer) = cancel(n);
        recorder.command(&region, SystemClock.now().ms(), &command, &answer);
        std::thread::sleep(Duration::from_millis(1));
    }
    unreachable!("it records until it is killed")
}
