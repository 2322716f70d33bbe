//! The writer: one thread that turns entries into lines, lines into blocks, blocks into segments.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{
    coalesce::Coalesced,
    entry::{CommandEntry, End, Gap, GapCause, LOG_FORMAT, Lost, WindowSource},
    options::{RecordOptions, RecordTrouble},
    recorder::{Message, QueuedCommand, QueuedWindow},
    segments::Segments,
    stats::Shared,
    wire::{Base, Line, WindowLine},
};
use crate::{
    domain::{RegionId, UnixMs},
    protocol::{Answer, Command},
};

/// A block ends at this size, unpacked; a longer line makes a longer block.
const BLOCK_BYTES: usize = 512 * 1024;

/// The disk is left alone for this long after it refused.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What stands in the block that is being filled.
#[derive(Default)]
struct Filling {
    text: Vec<u8>,
    lines: u64,
    /// What is missing if the block cannot be written.
    holds: BTreeMap<RegionId, Lost>,
    /// Entries in it that were not lost before.
    fresh: u64,
}

pub(super) struct Writer {
    options: RecordOptions,
    shared: Arc<Shared>,
    segments: Segments,
    filling: Filling,
    pings: BTreeMap<RegionId, Coalesced>,
    bases: HashMap<(RegionId, bool), Option<Base>>,
    /// Lost to the disk, not yet told.
    untold: BTreeMap<RegionId, Lost>,
    /// When something began to wait in memory.
    waiting_since: Option<Instant>,
    /// Before this the disk is not tried again.
    retry_at: Option<Instant>,
}

impl Writer {
    /// Begins a run.
    pub(super) fn open(options: RecordOptions, shared: Arc<Shared>) -> io::Result<Self> {
        let mut segments = Segments::open(&options)?;
        segments.begin()?;
        let mut writer = Self {
            options,
            shared,
            segments,
            filling: Filling::default(),
            pings: BTreeMap::new(),
            bases: HashMap::new(),
            untold: BTreeMap::new(),
            waiting_since: None,
            retry_at: None,
        };
        writer.head();
        if let Err(error) = writer.store_block() {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        Ok(writer)
    }

    /// The directory of the run.
    pub(super) fn run(&self) -> &Path {
        self.segments.run()
    }

    /// Writes what comes until there is nobody left to send.
    pub(super) fn run_until_closed(mut self, waiting: &Receiver<Message>) {
        loop {
            match waiting.recv_timeout(self.patience()) {
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Message::Flush(done)) => {
                    self.flush();
                    let _ = done.send(());
                }
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_due() {
                self.flush();
            }
            let synced = self.segments.sync_if_due(self.options.sync_every);
            self.note(synced);
        }
        self.flush_pings();
        let at_ms = self.now();
        self.line(None, Lost::default(), &Line::End(End { at_ms }));
        self.write_block();
        let synced = self.segments.finish();
        self.note(synced);
    }

    fn now(&self) -> UnixMs {
        self.options.clock.now().ms()
    }

    /// How long the next message may be waited for.
    fn patience(&self) -> Duration {
        let flush = self
            .waiting_since
            .map(|since| self.options.flush_every.saturating_sub(since.elapsed()));
        flush.unwrap_or(self.options.sync_every)
    }

    fn is_due(&self) -> bool {
        self.waiting_since
            .is_some_and(|since| since.elapsed() >= self.options.flush_every)
    }

    fn take(&mut self, message: Message) {
        self.waiting_since.get_or_insert_with(Instant::now);
        match message {
            Message::Command(command) => {
                let weight = command.weight;
                self.take_command(*command);
                self.release(weight);
            }
            Message::Window(window) => {
                let weight = window.weight;
                self.take_window(*window);
                self.release(weight);
            }
            Message::Gap(gap) => {
                let region = gap.region.clone();
                self.lost_before(&region, gap.lost, gap.cause);
            }
            Message::Flush(_) | Message::Close => {}
        }
    }

    fn release(&self, weight: usize) {
        self.shared.queued.fetch_sub(weight, Ordering::Relaxed);
    }

    fn take_command(&mut self, queued: QueuedCommand) {
        let QueuedCommand {
            region,
            at,
            command,
            answer,
            weight: _,
        } = queued;
        match (command, answer) {
            (Command::Ping(pings), Answer::Ping(answer)) => {
                let known = self.pings.entry(region);
                known
                    .or_insert_with(|| Coalesced::at(at))
                    .add(at, pings, &answer);
            }
            (command, answer) => {
                let lost = Lost {
                    commands: 1,
                    ..Lost::default()
                };
                let entry = CommandEntry {
                    region: region.clone(),
                    at_ms: at,
                    command,
                    answer,
                };
                self.line(Some(&region), lost, &Line::Command(Box::new(entry)));
            }
        }
    }

    fn take_window(&mut self, window: QueuedWindow) {
        let region = window.region.clone();
        // what a window was decided on came in before it
        if let Some(pings) = self.pings.remove(&region) {
            self.supply_line(&region, pings);
        }
        let lost = Lost {
            windows: 1,
            ..Lost::default()
        };
        if !self.ready() {
            return self.lose(&region, lost, 1);
        }
        let own = window.source == WindowSource::Own;
        let base = self.bases.entry((region.clone(), own)).or_default();
        let line = Line::Window(Box::new(WindowLine::tell(window, base)));
        self.line(Some(&region), lost, &line);
    }

    fn flush(&mut self) {
        self.flush_pings();
        self.write_block();
        self.waiting_since = None;
    }

    fn flush_pings(&mut self) {
        for (region, pings) in std::mem::take(&mut self.pings) {
            self.supply_line(&region, pings);
        }
    }

    fn supply_line(&mut self, region: &RegionId, pings: Coalesced) {
        let lost = Lost {
            ping_calls: pings.calls(),
            ..Lost::default()
        };
        let line = Line::Supply(pings.entry(region.clone()));
        self.line(Some(region), lost, &line);
    }

    /// Adds a line; `lost` is what is missing of the region if the line is.
    fn line(&mut self, region: Option<&RegionId>, lost: Lost, line: &Line) {
        if !self.ready() {
            if let Some(region) = region {
                self.lose(region, lost, lost.total());
            }
            return;
        }
        let before = self.filling.text.len();
        if let Err(error) = serde_json::to_writer(&mut self.filling.text, line) {
            self.filling.text.truncate(before);
            self.shared.encode_errors.fetch_add(1, Ordering::Relaxed);
            self.tell(&RecordTrouble::Encode {
                error: error.to_string().into(),
            });
            // a later snapshot must not be told against one that is not there
            self.bases.clear();
            return;
        }
        self.filling.text.push(b'\n');
        self.filling.lines += 1;
        self.filling.fresh += lost.total();
        if let Some(region) = region {
            self.filling
                .holds
                .entry(region.clone())
                .or_default()
                .add(lost);
        }
        if self.filling.text.len() >= BLOCK_BYTES {
            self.write_block();
        }
    }

    /// Tells of entries that were lost before they came here.
    fn lost_before(&mut self, region: &RegionId, lost: Lost, cause: GapCause) {
        let gap = Line::Gap(Gap {
            region: region.clone(),
            cause,
            lost,
        });
        if self.ready() {
            self.line(Some(region), lost, &gap);
            self.filling.fresh = self.filling.fresh.saturating_sub(lost.total());
        } else {
            self.untold.entry(region.clone()).or_default().add(lost);
        }
    }

    /// Whether a line may be added: there is a segment, a new one if the last was full, and what
    /// the disk lost before is told.
    fn ready(&mut self) -> bool {
        if !self.filling.text.is_empty() {
            return true;
        }
        if !self.segments.wants_new(&self.options) {
            return true;
        }
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        let begun = self.segments.begin();
        if !self.note(begun) {
            self.retry_at = Some(Instant::now() + RETRY_AFTER);
            return false;
        }
        self.retry_at = None;
        self.bases.clear();
        self.head();
        for (region, lost) in std::mem::take(&mut self.untold) {
            self.lost_before(&region, lost, GapCause::Disk);
        }
        true
    }

    /// The first line of a segment.
    fn head(&mut self) {
        self.shared.segments.fetch_add(1, Ordering::Relaxed);
        let header = self.segments.header(&self.options, LOG_FORMAT);
        self.line(None, Lost::default(), &Line::Header(header));
    }

    /// Writes the block that is being filled; what it held is lost if the disk refuses.
    fn write_block(&mut self) {
        if self.filling.text.is_empty() {
            return;
        }
        if let Err(error) = self.store_block() {
            let Filling { holds, fresh, .. } = std::mem::take(&mut self.filling);
            self.shared.dropped.fetch_add(fresh, Ordering::Relaxed);
            for (region, lost) in holds {
                self.untold.entry(region).or_default().add(lost);
            }
            self.bases.clear();
            self.retry_at = Some(Instant::now() + RETRY_AFTER);
            self.note(Err(error));
        }
    }

    fn store_block(&mut self) -> io::Result<()> {
        let written = self
            .segments
            .write(&self.filling.text, self.options.max_bytes)?;
        self.shared
            .bytes
            .fetch_add(written.bytes, Ordering::Relaxed);
        self.shared
            .deleted
            .fetch_add(written.deleted, Ordering::Relaxed);
        self.shared
            .lines
            .fetch_add(self.filling.lines, Ordering::Relaxed);
        self.filling = Filling {
            // the room is kept: the next block is about as long
            text: {
                let mut text = std::mem::take(&mut self.filling.text);
                text.clear();
                text.shrink_to(4 * BLOCK_BYTES);
                text
            },
            ..Filling::default()
        };
        Ok(())
    }

    fn lose(&mut self, region: &RegionId, lost: Lost, fresh: u64) {
        self.shared.dropped.fetch_add(fresh, Ordering::Relaxed);
        self.untold.entry(region.clone()).or_default().add(lost);
    }

    /// Tells of a refusal of the disk; whether there was none.
    fn note(&mut self, done: io::Result<()>) -> bool {
        let Err(error) = done else { return true };
        self.shared.disk_errors.fetch_add(1, Ordering::Relaxed);
        self.tell(&RecordTrouble::Disk {
            path: self.segments.place(),
            error: error.to_string().into(),
        });
        false
    }

    fn tell(&self, trouble: &RecordTrouble) {
        if let Some(hear) = &self.options.on_trouble {
            hear(trouble);
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let run: PathBuf = self.run().to_owned();
        f.debug_struct("Writer")
            .field("run", &run)
            .finish_non_exhaustive()
    }
}
