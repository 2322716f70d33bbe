//! The entries of several runs in the order of time, as one service took them in.

use std::path::PathBuf;

use super::{
    entry::Entry,
    files::run_start,
    reader::{LogError, LogReader, ReadAccount},
};
use crate::domain::{DurationMs, UnixMs};

/// A run is opened this long before its start, since clocks of nodes differ.
const EARLY: DurationMs = DurationMs::new(60_000);

/// The entries of several runs. At a time only those runs are open that overlap.
pub(super) struct Merged {
    /// Runs that have not begun, the next one last.
    waiting: Vec<(UnixMs, LogReader)>,
    open: Vec<OpenRun>,
    account: ReadAccount,
    total_bytes: u64,
}

struct OpenRun {
    reader: LogReader,
    next: Entry,
    /// The time of `next`, never before that of the entry before it.
    at: UnixMs,
}

impl Merged {
    /// Opens logs as [`LogReader::open`] does.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, LogError> {
        let readers = LogReader::open(paths)?.apart();
        let total_bytes = readers.iter().map(LogReader::total_bytes).sum();
        let mut waiting: Vec<(UnixMs, LogReader)> = readers
            .into_iter()
            .map(|reader| {
                // a run under another name may have begun at any time
                let start = reader.first_file().and_then(run_start);
                (start.map_or(UnixMs::new(i64::MIN), |at| at - EARLY), reader)
            })
            .collect();
        waiting.sort_by_key(|(start, _)| std::cmp::Reverse(*start));
        Ok(Self {
            waiting,
            open: Vec::new(),
            account: ReadAccount::default(),
            total_bytes,
        })
    }

    /// Bytes of all segments, packed.
    pub(super) const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// What was read so far.
    pub(super) fn account(&self) -> ReadAccount {
        let mut account = self.account.clone();
        for run in &self.open {
            account.add(run.reader.account());
        }
        account
    }

    /// The next entry in time; of entries at the same time, that of the run that began first.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, LogError> {
        let mut first = self.first();
        while let Some((start, _)) = self.waiting.last()
            && first.is_none_or(|i| *start <= self.open[i].at)
        {
            let Some((start, reader)) = self.waiting.pop() else {
                break;
            };
            self.refill(reader, start, self.open.len())?;
            first = self.first();
        }
        let Some(first) = first else {
            return Ok(None);
        };
        let OpenRun { reader, next, at } = self.open.remove(first);
        self.refill(reader, at, first)?;
        Ok(Some(next))
    }

    fn first(&self) -> Option<usize> {
        (0..self.open.len()).min_by_key(|&i| self.open[i].at)
    }

    /// Reads a run's next entry and keeps the run at its place, unless it is over.
    fn refill(&mut self, mut reader: LogReader, at: UnixMs, place: usize) -> Result<(), LogError> {
        let Some(next) = reader.next().transpose()? else {
            self.account.add(reader.account());
            return Ok(());
        };
        let at = time_of(&next).map_or(at, |time| time.max(at));
        self.open.insert(place, OpenRun { reader, next, at });
        Ok(())
    }
}

fn time_of(entry: &Entry) -> Option<UnixMs> {
    match entry {
        Entry::Header(header) => Some(header.started_ms),
        Entry::Command(command) => Some(command.at_ms),
        Entry::Supply(supply) => Some(supply.to_ms),
        Entry::Window(window) => Some(window.snapshot.now()),
        Entry::Gap(_) => None,
        Entry::End(end) => Some(end.at_ms),
    }
}
