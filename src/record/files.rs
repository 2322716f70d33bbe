//! The files of a record: a directory for each run of a node, numbered segments inside.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::block::{START_BYTES, is_segment};
use crate::domain::{NodeId, UnixMs};

/// How the name of a segment ends.
const SEGMENT_END: &str = ".jsonl.zst";

/// Length of the instant in the name of a run: `20261130T154329485Z`.
const INSTANT: usize = 19;

/// A segment on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    /// Its number within the run.
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// The name of a segment: `segment-00000001.jsonl.zst`.
pub(super) fn segment_name(number: u64) -> String {
    format!("segment-{number:08}{SEGMENT_END}")
}

/// The name of a run: the node, then when the run began, so that names sort by time.
pub(super) fn run_name(node: &NodeId, at: UnixMs) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.get()).unwrap_or_default();
    format!(
        "{}{}",
        run_prefix(node),
        instant.strftime("%Y%m%dT%H%M%S%3fZ")
    )
}

/// A node's name for the file system: letters, digits, `.`, `_` and `-` as they are, the rest as
/// `%` and two hexadecimal digits, so that two nodes never share a name.
fn run_prefix(node: &NodeId) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for byte in node.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name.push('-');
    name
}

/// The runs of a node under a directory, oldest first.
pub(super) fn runs_of(directory: &Path, node: &NodeId) -> io::Result<Vec<PathBuf>> {
    let prefix = run_prefix(node);
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let instant = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let is_run = instant.is_some_and(|at| {
            at.len() == INSTANT
                && at.ends_with('Z')
                && at
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b == b'T' || b == b'Z')
        });
        if is_run && entry.file_type()?.is_dir() {
            runs.push(entry.path());
        }
    }
    runs.sort();
    Ok(runs)
}

/// When the run of a segment began, told by the name of its directory.
pub(super) fn run_start(segment: &Path) -> Option<UnixMs> {
    let name = segment.parent()?.file_name()?.to_str()?;
    let instant = name.get(name.len().checked_sub(INSTANT)?..)?;
    let seconds = instant.get(..15)?;
    let ms: i64 = instant.get(15..18)?.parse().ok()?;
    let at = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", seconds).ok()?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(at).ok()?;
    Some(UnixMs::new(at.as_millisecond() + ms))
}

/// The segments of a run, by number.
pub(super) fn segments_of(run: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(run)? {
        let entry = entry?;
        let path = entry.path();
        let Some(number) = segment_number(&path) else {
            continue;
        };
        let bytes = entry.metadata()?.len();
        segments.push(SegmentFile {
            path,
            number,
            bytes,
        });
    }
    segments.sort_by_key(|segment| segment.number);
    Ok(segments)
}

fn segment_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("segment-")?.strip_suffix(SEGMENT_END)?;
    number.parse().ok()
}

/// Whether `path` is a record: a segment (told by its content, whatever its name), the directory
/// of a run, or one that holds such directories.
pub fn is_record(path: &Path) -> bool {
    if path.is_dir() {
        return !runs_in(path).unwrap_or_default().is_empty();
    }
    begins_as_segment(path)
}

fn begins_as_segment(path: &Path) -> bool {
    let mut head = Vec::with_capacity(START_BYTES);
    fs::File::open(path)
        .and_then(|file| file.take(START_BYTES as u64).read_to_end(&mut head))
        .is_ok_and(|_| is_segment(&head))
}

/// The runs that `path` stands for, each as its segments in order. A directory is one run if it
/// holds segments, else every directory in it that does is one.
pub(super) fn runs_in(path: &Path) -> io::Result<Vec<Vec<SegmentFile>>> {
    if !path.is_dir() {
        let bytes = fs::metadata(path)?.len();
        return Ok(vec![vec![SegmentFile {
            path: path.to_owned(),
            number: segment_number(path).unwrap_or(1),
            bytes,
        }]]);
    }
    let own = segments_of(path)?;
    if !own.is_empty() {
        return Ok(vec![own]);
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    inside.retain(|path| path.is_dir());
    inside.sort();
    let mut runs = Vec::new();
    for directory in inside {
        let segments = segments_of(&directory)?;
        if !segments.is_empty() {
            runs.push(segments);
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_unique_to_their_node_and_sort_by_time() {
        let name = |node: &str, at| run_name(&NodeId::new(node).unwrap(), UnixMs::new(at));
        assert_eq!(
            name("127.0.0.1:7070", 1_796_044_599_485),
            "127.0.0.1%3a7070-20261130T131639485Z"
        );
        let path = Path::new(&name("a:b", 1_796_044_599_485)).join(segment_name(1));
        assert_eq!(run_start(&path), Some(UnixMs::new(1_796_044_599_485)));
        assert_eq!(run_start(Path::new("/tmp/log/segment-1")), None);
        assert!(name("a", 1_796_044_599_485) < name("a", 1_796_044_599_486));
        assert_ne!(name("a:b", 0), name("a%3ab", 0));
    }

    #[test]
    fn a_number_is_read_back_from_a_name() {
        assert_eq!(segment_number(Path::new(&segment_name(12))), Some(12));
        assert_eq!(segment_number(Path::new("segment-1.csv")), None);
    }
}
