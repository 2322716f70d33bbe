//! The segments of the run under way: where blocks go, when the next one begins, what is deleted.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    block,
    entry::Header,
    files::{SegmentFile, run_name, runs_of, segment_name, segments_of},
    options::RecordOptions,
};
use crate::domain::{DurationMs, UnixMs};

/// What writing a block led to.
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) deleted: u64,
}

pub(super) struct Segments {
    run: PathBuf,
    run_at: UnixMs,
    current: Option<Current>,
    /// Segments begun in this run.
    begun: u64,
    /// Blocks written in this run.
    blocks: u64,
    /// Ended segments of all runs of the node, oldest first.
    ended: VecDeque<SegmentFile>,
    ended_bytes: u64,
    synced: Instant,
}

struct Current {
    file: File,
    path: PathBuf,
    bytes: u64,
    since: Instant,
    unsynced: bool,
}

impl Segments {
    /// Makes the directory of a new run, and looks what earlier runs of the node left.
    pub(super) fn open(options: &RecordOptions) -> io::Result<Self> {
        fs::create_dir_all(&options.directory)?;
        let mut ended = VecDeque::new();
        for run in runs_of(&options.directory, &options.node)? {
            ended.extend(segments_of(&run)?);
        }
        let mut run_at = options.clock.now().ms();
        let run = loop {
            let run = options.directory.join(run_name(&options.node, run_at));
            match fs::create_dir(&run) {
                Ok(()) => break run,
                // two runs in one millisecond, or a clock that went back
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    run_at = run_at + DurationMs::new(1);
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Self {
            run,
            run_at,
            current: None,
            begun: 0,
            blocks: 0,
            ended_bytes: ended.iter().map(|segment| segment.bytes).sum(),
            ended,
            synced: Instant::now(),
        })
    }

    /// The directory of the run.
    pub(super) fn run(&self) -> &Path {
        &self.run
    }

    /// The file being written, or the directory.
    pub(super) fn place(&self) -> PathBuf {
        self.current
            .as_ref()
            .map_or_else(|| self.run.clone(), |current| current.path.clone())
    }

    /// Whether the next block belongs into a new segment.
    pub(super) fn wants_new(&self, options: &RecordOptions) -> bool {
        let most = options.max_bytes.map_or(options.segment_bytes, |max| {
            options.segment_bytes.min(max / 4)
        });
        self.current.as_ref().is_none_or(|current| {
            current.bytes > 0
                && (current.bytes >= most || current.since.elapsed() >= options.segment_age)
        })
    }

    /// Ends the segment being written and begins the next.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let ended = self.finish();
        let number = self.begun + 1;
        let path = self.run.join(segment_name(number));
        let file = File::options().write(true).create_new(true).open(&path)?;
        self.begun = number;
        // the name itself must survive; where directories cannot be synced, nothing more can be done
        let _ = File::open(&self.run).and_then(|directory| directory.sync_all());
        self.current = Some(Current {
            file,
            path,
            bytes: 0,
            since: Instant::now(),
            unsynced: false,
        });
        ended
    }

    /// The first line of the segment being written.
    pub(super) fn header(&self, options: &RecordOptions, format: &str) -> Header {
        Header {
            format: format.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            node: options.node.clone(),
            run_ms: self.run_at,
            segment: self.begun,
            started_ms: options.clock.now().ms(),
        }
    }

    /// Writes lines as the next block, after making room for it. If the disk refuses, the segment
    /// is cut back to its last whole block and left.
    pub(super) fn write(&mut self, lines: &[u8], max_bytes: Option<u64>) -> io::Result<Written> {
        let block = block::pack(self.blocks + 1, lines)?;
        let bytes = block.len() as u64;
        let deleted = max_bytes.map_or(0, |max| self.make_room(max.saturating_sub(bytes)));
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("no segment is open"));
        };
        if let Err(error) = current.file.write_all(&block) {
            self.abandon();
            return Err(error);
        }
        current.bytes += bytes;
        current.unsynced = true;
        self.blocks += 1;
        Ok(Written { bytes, deleted })
    }

    /// Deletes the oldest ended segments until at most `most` bytes are left, or only the segment
    /// being written.
    fn make_room(&mut self, most: u64) -> u64 {
        let mut deleted = 0;
        let current = self.current.as_ref().map_or(0, |current| current.bytes);
        while self.ended_bytes + current > most {
            let Some(oldest) = self.ended.pop_front() else {
                break;
            };
            self.ended_bytes -= oldest.bytes;
            // one that cannot be deleted is left to the operator; the next is tried
            deleted += u64::from(fs::remove_file(&oldest.path).is_ok());
            if let Some(run) = oldest.path.parent()
                && run != self.run
            {
                // refused, as it should be, while other segments are there
                let _ = fs::remove_dir(run);
            }
        }
        deleted
    }

    /// Leaves a segment that could not be written to.
    fn abandon(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        // if this is refused as well, the reader finds a torn tail
        let _ = current.file.set_len(current.bytes);
        if current.bytes == 0 {
            let _ = fs::remove_file(&current.path);
        } else {
            self.ended_bytes += current.bytes;
            self.ended.push_back(SegmentFile {
                path: current.path,
                number: self.begun,
                bytes: current.bytes,
            });
        }
    }

    /// Brings what was written to the disk, if the last time is `every` ago.
    pub(super) fn sync_if_due(&mut self, every: Duration) -> io::Result<()> {
        if self.synced.elapsed() < every {
            return Ok(());
        }
        self.synced = Instant::now();
        match &mut self.current {
            Some(current) if current.unsynced => {
                current.unsynced = false;
                current.file.sync_data()
            }
            _ => Ok(()),
        }
    }

    /// Ends the segment being written, all of it on the disk.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        self.ended_bytes += current.bytes;
        self.ended.push_back(SegmentFile {
            path: current.path,
            number: self.begun,
            bytes: current.bytes,
        });
        current.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{
        domain::NodeId,
        record::{LogError, LogReader, entry::LOG_FORMAT, wire::Line},
    };

    /// A segment's header, as the writer writes it.
    fn header(segments: &Segments, options: &RecordOptions) -> Vec<u8> {
        let header = segments.header(options, LOG_FORMAT);
        let mut line = serde_json::to_vec(&Line::Header(header)).unwrap();
        line.push(b'\n');
        line
    }

    #[test]
    fn a_segment_that_could_not_be_written_to_is_left_and_the_next_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let options = RecordOptions::new(dir.path().to_owned(), NodeId::new("n").unwrap());
        let mut segments = Segments::open(&options).unwrap();
        segments.begin().unwrap();
        let head = header(&segments, &options);
        segments.write(&head, None).unwrap();
        let first = segments.place();
        // a handle that may only read refuses as a full disk does, even to be cut back
        segments.current.as_mut().unwrap().file = File::open(&first).unwrap();
        assert!(segments.write(&head, None).is_err());
        assert!(segments.wants_new(&options));
        let mut torn = File::options().append(true).open(&first).unwrap();
        torn.write_all(&block::pack(2, &head).unwrap()[..50])
            .unwrap();

        segments.begin().unwrap();
        let head = header(&segments, &options);
        segments.write(&head, None).unwrap();
        segments.finish().unwrap();
        let mut log = LogReader::open(&[dir.path().to_owned()]).unwrap();
        assert_eq!(log.by_ref().flatten().count(), 2);
        let account = log.account();
        assert_eq!((account.segments, account.torn.len()), (2, 1));
        assert_eq!(account.missing, []);
        assert_eq!(account.torn[0].file, first);

        // had block 2 been written to its end, block 3 would come next: then the tail is damage
        let second = first.with_file_name(segment_name(2));
        fs::write(second, block::pack(3, &head).unwrap()).unwrap();
        let mut log = LogReader::open(&[dir.path().to_owned()]).unwrap();
        let Some(Err(LogError::Damaged { file, .. })) = log.find(Result::is_err) else {
            panic!("a damaged tail was taken for a torn one");
        };
        assert_eq!(file, first);
    }
}
