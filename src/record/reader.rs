//! Reading logs back: every whole block, in order, and an account of what is not there.
//!
//! Promises to give every entry up to the first damage, to cut a torn tail and count it, to name
//! missing blocks, and to stop at damage with its file and offset. A torn tail that the writer went
//! on after (a full disk that could not be cut back) is none: the next segment goes on with the
//! block's number. If the number was passed over, the tail was whole once, and that is damage.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    block::{self, Next},
    entry::{Entry, LOG_FORMAT},
    files::{SegmentFile, runs_in},
    wire::{Base, Line},
};
use crate::domain::RegionId;

/// Why a log cannot be read (on).
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file or directory cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Io {
        /// Which.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There are no segments.
    #[error("{} holds no record (segments named segment-00000001.jsonl.zst)", path.display())]
    NoRecord {
        /// Where.
        path: PathBuf,
    },
    /// Written in a format that this version does not read.
    #[error("{} is in the format {format:?}; this version reads {LOG_FORMAT:?}", file.display())]
    Format {
        /// The segment.
        file: PathBuf,
        /// Its format.
        format: String,
    },
    /// Not what was written.
    #[error("{} is damaged at offset {offset}: {detail}", file.display())]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// Where its damaged block begins.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
}

/// A tail that was not written to its end.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TornTail {
    /// The segment.
    pub file: PathBuf,
    /// Where it was cut.
    pub offset: u64,
    /// How much was cut.
    pub bytes: u64,
}

/// Blocks that are not there, though later ones are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MissingBlocks {
    /// The segment before which they are missing.
    pub file: PathBuf,
    /// How many.
    pub blocks: u64,
}

/// What was read, and what was not there.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ReadAccount {
    /// Runs of nodes.
    pub runs: u64,
    /// Runs without a mark of their end: the process was killed, or still runs.
    pub unended_runs: u64,
    /// Segments read.
    pub segments: u64,
    /// Bytes read, packed.
    pub bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// Tails that were cut.
    pub torn: Vec<TornTail>,
    /// Blocks missing in the middle of a run.
    pub missing: Vec<MissingBlocks>,
}

impl ReadAccount {
    /// Adds what was read of other runs.
    pub(super) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.unended_runs += other.unended_runs;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.torn.extend_from_slice(&other.torn);
        self.missing.extend_from_slice(&other.missing);
    }
}

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// The segment.
    pub file: PathBuf,
    /// Where its block begins.
    pub offset: u64,
}

/// The entries of one or more logs, run by run. Ends after the first error.
pub struct LogReader {
    runs: VecDeque<VecDeque<SegmentFile>>,
    open: Option<OpenSegment>,
    bases: HashMap<(RegionId, bool), Option<Base>>,
    /// The number of the block that should come next; none is known at the start of a run.
    expected: Option<u64>,
    /// The tail cut from the segment before, if one was.
    tail: Option<TornTail>,
    in_run: bool,
    /// The run's end was marked.
    ended: bool,
    total_bytes: u64,
    account: ReadAccount,
    position: Position,
    failed: bool,
}

struct OpenSegment {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the next block begins.
    offset: usize,
    lines: Lines,
    has_header: bool,
}

/// The lines of a block that are still to be given.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    at: usize,
    number: u64,
}

impl Lines {
    fn next(&mut self) -> Option<&[u8]> {
        let rest = self.text.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        self.at += end + 1;
        self.number += 1;
        rest.get(..end)
    }
}

impl LogReader {
    /// Opens logs: segments, directories of runs, or directories that hold such directories. What
    /// is named twice is read once.
    ///
    /// # Errors
    /// A path cannot be read, or holds no record.
    pub fn open(paths: &[PathBuf]) -> Result<Self, LogError> {
        let mut seen = HashSet::new();
        let mut runs = VecDeque::new();
        for path in paths {
            let found = runs_in(path).map_err(|source| LogError::Io {
                file: path.clone(),
                source,
            })?;
            if found.is_empty() {
                return Err(LogError::NoRecord { path: path.clone() });
            }
            for mut run in found {
                run.retain(|segment| {
                    let same = fs::canonicalize(&segment.path);
                    seen.insert(same.unwrap_or_else(|_| segment.path.clone()))
                });
                if !run.is_empty() {
                    runs.push_back(VecDeque::from(run));
                }
            }
        }
        Ok(Self::of(runs))
    }

    fn of(runs: VecDeque<VecDeque<SegmentFile>>) -> Self {
        let total_bytes = runs.iter().flatten().map(|segment| segment.bytes).sum();
        Self {
            runs,
            open: None,
            bases: HashMap::new(),
            expected: None,
            tail: None,
            in_run: false,
            ended: false,
            total_bytes,
            account: ReadAccount::default(),
            position: Position::default(),
            failed: false,
        }
    }

    /// The same, each run by a reader of its own.
    pub(super) fn apart(self) -> Vec<Self> {
        let one = |run| Self::of(VecDeque::from([run]));
        self.runs.into_iter().map(one).collect()
    }

    /// The first segment that is not read yet.
    pub(super) fn first_file(&self) -> Option<&Path> {
        let segment = self.runs.front()?.front()?;
        Some(&segment.path)
    }

    /// Bytes of all segments, packed.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// What was read so far. Complete once there are no more entries.
    pub const fn account(&self) -> &ReadAccount {
        &self.account
    }

    /// Where the last entry stands.
    pub const fn position(&self) -> &Position {
        &self.position
    }

    fn advance(&mut self) -> Result<Option<Entry>, LogError> {
        loop {
            let Some(open) = &mut self.open else {
                if !self.next_segment()? {
                    return Ok(None);
                }
                continue;
            };
            if let Some(line) = open.lines.next() {
                let decoded = serde_json::from_slice::<Line>(line);
                let number = open.lines.number;
                self.account.lines += 1;
                return match decoded {
                    Ok(line) => self.entry(line).map(Some),
                    Err(error) => Err(self.damaged(format!("line {number} of its block: {error}"))),
                };
            }
            self.next_block()?;
        }
    }

    /// Opens the next segment; none is left if false.
    fn next_segment(&mut self) -> Result<bool, LogError> {
        let Some(run) = self.runs.front_mut() else {
            return Ok(false);
        };
        let Some(segment) = run.pop_front() else {
            self.runs.pop_front();
            self.account.unended_runs += u64::from(!self.ended);
            self.expected = None;
            self.tail = None;
            self.in_run = false;
            return Ok(true);
        };
        if !self.in_run {
            self.in_run = true;
            self.ended = false;
            self.account.runs += 1;
        }
        let bytes = fs::read(&segment.path).map_err(|source| LogError::Io {
            file: segment.path.clone(),
            source,
        })?;
        self.account.segments += 1;
        self.account.bytes += bytes.len() as u64;
        self.bases.clear();
        self.open = Some(OpenSegment {
            path: segment.path,
            bytes,
            offset: 0,
            lines: Lines::default(),
            has_header: false,
        });
        Ok(true)
    }

    /// Goes on to the next block of the open segment, or closes it.
    fn next_block(&mut self) -> Result<(), LogError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        self.position = Position {
            file: open.path.clone(),
            offset: open.offset as u64,
        };
        match block::next(&open.bytes, open.offset) {
            Next::Block(block) => {
                let first = open.offset == 0;
                open.offset = block.end;
                open.lines = Lines {
                    text: block.lines,
                    ..Lines::default()
                };
                self.number_is(block.number, first)
            }
            Next::End => {
                self.open = None;
                Ok(())
            }
            Next::Torn => {
                let tail = TornTail {
                    file: open.path.clone(),
                    offset: open.offset as u64,
                    bytes: (open.bytes.len() - open.offset) as u64,
                };
                self.account.torn.push(tail.clone());
                self.tail = Some(tail);
                self.open = None;
                Ok(())
            }
            Next::Damaged(detail) => Err(self.damaged(detail)),
        }
    }

    /// Compares a block's number with the one that should come.
    fn number_is(&mut self, number: u64, first_of_segment: bool) -> Result<(), LogError> {
        let expected = self.expected.replace(number + 1);
        let tail = self.tail.take();
        let Some(expected) = expected else {
            return Ok(());
        };
        if number == expected {
            return Ok(());
        }
        if number < expected || !first_of_segment {
            let detail = format!("block {number} stands where block {expected} should");
            return Err(self.damaged(detail));
        }
        if let Some(tail) = tail {
            return Err(LogError::Damaged {
                file: tail.file,
                offset: tail.offset,
                detail: "the block cannot be read, but was written to its end".into(),
            });
        }
        self.account.missing.push(MissingBlocks {
            file: self.position.file.clone(),
            blocks: number - expected,
        });
        Ok(())
    }

    fn entry(&mut self, line: Line) -> Result<Entry, LogError> {
        let begun = self.open.as_mut().is_none_or(|open| {
            let begun = open.has_header;
            open.has_header = true;
            begun
        });
        if begun == matches!(line, Line::Header(_)) {
            return Err(self.damaged("a segment begins with one header".into()));
        }
        Ok(match line {
            Line::Header(header) => {
                if *header.format != *LOG_FORMAT {
                    return Err(LogError::Format {
                        file: self.position.file.clone(),
                        format: header.format.to_string(),
                    });
                }
                Entry::Header(header)
            }
            Line::Command(command) => Entry::Command(command),
            Line::Supply(supply) => Entry::Supply(supply),
            Line::Window(window) => {
                let key = window.base_key();
                let base = self.bases.entry(key).or_default();
                match window.read(base) {
                    Ok(window) => Entry::Window(Box::new(window)),
                    Err(detail) => return Err(self.damaged(detail)),
                }
            }
            Line::Gap(gap) => Entry::Gap(gap),
            Line::End(end) => {
                self.ended = true;
                Entry::End(end)
            }
        })
    }

    fn damaged(&self, detail: String) -> LogError {
        LogError::Damaged {
            file: self.position.file.clone(),
            offset: self.position.offset,
            detail,
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader")
            .field("position", &self.position)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}
