//! The handle through which a node records: it never blocks, and what does not fit is counted.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use parking_lot::Mutex;

use super::{
    entry::{Gap, GapCause, Lost, WindowEntry, WindowSource},
    options::{MIN_MAX_BYTES, RecordOptions},
    stats::{RecordStats, Shared},
    writer::Writer,
};
use crate::{
    decision::{WindowDecision, WindowSnapshot},
    domain::{RegionId, RequestId, UnixMs, WindowId, WindowSeq},
    protocol::{Answer, Command},
};

/// Records what a node takes in and decides. Cheap to clone; all clones write one log.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    limit: usize,
    run: PathBuf,
    any_lost: AtomicBool,
    lost: Mutex<BTreeMap<RegionId, Lost>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is on its way to the writer.
pub(super) enum Message {
    Command(Box<QueuedCommand>),
    Window(Box<QueuedWindow>),
    Gap(Gap),
    /// Answered once everything before it is on its way to the disk.
    Flush(mpsc::SyncSender<()>),
    Close,
}

pub(super) struct QueuedCommand {
    pub(super) region: RegionId,
    pub(super) at: UnixMs,
    pub(super) command: Command,
    pub(super) answer: Answer,
    pub(super) weight: usize,
}

pub(super) struct QueuedWindow {
    pub(super) region: RegionId,
    pub(super) window_seq: Option<WindowSeq>,
    pub(super) window_id: Option<WindowId>,
    pub(super) source: WindowSource,
    pub(super) snapshot: WindowSnapshot,
    pub(super) decision: WindowDecision,
    pub(super) claim_lost: Vec<RequestId>,
    pub(super) repaired: Option<WindowDecision>,
    pub(super) weight: usize,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("run", &self.0.run)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Begins a run: makes its directory and its first segment, and starts the writer.
    ///
    /// # Errors
    /// The directory or the segment cannot be made, the limit is below [`MIN_MAX_BYTES`], or no
    /// thread can be started.
    pub fn open(options: RecordOptions) -> io::Result<Self> {
        if options.max_bytes.is_some_and(|max| max < MIN_MAX_BYTES) {
            let least = format!("at least {MIN_MAX_BYTES} bytes are needed for a record");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, least));
        }
        let (queue, waiting) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let limit = options.queue_bytes;
        let writer = Writer::open(options, Arc::clone(&shared))?;
        let run = writer.run().to_owned();
        let thread = std::thread::Builder::new()
            .name("kheya-record".into())
            .spawn(move || writer.run_until_closed(&waiting))?;
        Ok(Self(Arc::new(Inner {
            queue,
            shared,
            limit,
            run,
            any_lost: AtomicBool::new(false),
            lost: Mutex::default(),
            thread: Mutex::new(Some(thread)),
        })))
    }

    /// The directory of this run.
    pub fn run_directory(&self) -> &Path {
        &self.0.run
    }

    /// Records a command of a caller and its answer. The protocol's own steps (taking, claiming
    /// and sealing windows, leadership, sweeping) are no inputs and are passed over.
    ///
    /// Entries of a region stand in the log in the order of these calls. Never blocks.
    pub fn command(&self, region: &RegionId, at: UnixMs, command: &Command, answer: &Answer) {
        if is_input(command) {
            let (weight, lost) = (command_weight(command), command_lost(command));
            self.admit(region, weight, lost, || {
                Message::Command(Box::new(QueuedCommand {
                    region: region.clone(),
                    at,
                    command: command.clone(),
                    answer: answer.clone(),
                    weight,
                }))
            });
        }
    }

    /// The same for a command that is no longer needed.
    pub(super) fn owned_command(
        &self,
        region: &RegionId,
        at: UnixMs,
        command: Command,
        answer: &Answer,
    ) {
        let (weight, lost) = (command_weight(&command), command_lost(&command));
        self.admit(region, weight, lost, || {
            Message::Command(Box::new(QueuedCommand {
                region: region.clone(),
                at,
                command,
                answer: answer.clone(),
                weight,
            }))
        });
    }

    /// Records a window that was decided. Never blocks; costs a clone of the decision and of the
    /// snapshot's lists of pointers.
    pub fn window(&self, entry: WindowEntry<'_>) {
        let weight = window_weight(&entry);
        let lost = Lost {
            windows: 1,
            ..Lost::default()
        };
        self.admit(entry.region, weight, lost, || {
            Message::Window(Box::new(QueuedWindow {
                region: entry.region.clone(),
                window_seq: entry.window_seq,
                window_id: entry.window_id.cloned(),
                source: entry.source,
                snapshot: entry.snapshot.clone(),
                decision: entry.decision.clone(),
                claim_lost: entry.claim_lost.to_vec(),
                repaired: entry.repaired.cloned(),
                weight,
            }))
        });
    }

    /// What was recorded so far.
    pub fn stats(&self) -> RecordStats {
        RecordStats {
            queue_bytes: self.0.limit as u64,
            ..self.0.shared.stats()
        }
    }

    /// Waits until everything recorded before is handed to the operating system, or was dropped.
    pub fn flush(&self) {
        self.tell_lost();
        let (done, told) = mpsc::sync_channel(1);
        if self.0.queue.send(Message::Flush(done)).is_ok() {
            // an error says that the writer ended, which flushed as well
            let _ = told.recv();
        }
    }

    /// Writes what is left, marks the end of the run, and waits until all is on the disk. What is
    /// recorded afterwards is dropped.
    pub fn close(&self) {
        self.tell_lost();
        let _ = self.0.queue.send(Message::Close);
        let thread = self.0.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Queues a message if there is room for it; counts it as lost if not.
    fn admit(
        &self,
        region: &RegionId,
        weight: usize,
        lost: Lost,
        message: impl FnOnce() -> Message,
    ) {
        let inner = &*self.0;
        let queued = &inner.shared.queued;
        // one entry always fits, however heavy it is
        let before = queued.fetch_add(weight, Ordering::Relaxed);
        if before != 0 && before.saturating_add(weight) > inner.limit {
            queued.fetch_sub(weight, Ordering::Relaxed);
            return self.lose(region, lost);
        }
        self.tell_lost();
        if inner.queue.send(message()).is_err() {
            queued.fetch_sub(weight, Ordering::Relaxed);
            self.lose(region, lost);
        }
    }

    fn lose(&self, region: &RegionId, lost: Lost) {
        let inner = &*self.0;
        inner.shared.dropped.fetch_add(1, Ordering::Relaxed);
        inner
            .lost
            .lock()
            .entry(region.clone())
            .or_default()
            .add(lost);
        inner.any_lost.store(true, Ordering::Release);
    }

    /// Puts what was lost into the queue, before whatever comes next.
    fn tell_lost(&self) {
        let inner = &*self.0;
        if !inner.any_lost.swap(false, Ordering::Acquire) {
            return;
        }
        let lost = std::mem::take(&mut *inner.lost.lock());
        for (region, lost) in lost {
            let cause = GapCause::QueueFull;
            let _ = inner.queue.send(Message::Gap(Gap {
                region,
                cause,
                lost,
            }));
        }
    }
}

/// Whether a command comes from a caller.
pub(super) fn is_input(command: &Command) -> bool {
    match command {
        Command::Ping(_)
        | Command::RemoveDriver(_)
        | Command::Intake(_)
        | Command::Cancel(_)
        | Command::Confirm(_)
        | Command::Release(_)
        | Command::Complete(_)
        | Command::Extend(_)
        | Command::BeginOwn(_)
        | Command::ClaimOwn(_)
        | Command::Configure(_)
        | Command::Reconcile(_) => true,
        Command::TakeWindow(_)
        | Command::ClaimBatch(_)
        | Command::Seal(_)
        | Command::FinishOwn(_)
        | Command::Acquire(_)
        | Command::Renew(_)
        | Command::Resign(_)
        | Command::Sweep(_) => false,
    }
}

fn command_lost(command: &Command) -> Lost {
    let mut lost = Lost::default();
    if matches!(command, Command::Ping(_)) {
        lost.ping_calls = 1;
    } else {
        lost.commands = 1;
    }
    lost
}

/// Roughly the memory of a queued command and its answer.
fn command_weight(command: &Command) -> usize {
    const BASE: usize = 512;
    const ENTRY: usize = 384;
    let entries = match command {
        Command::Ping(pings) => pings.pings.len(),
        Command::Intake(intake) => intake.requests.len(),
        Command::ClaimOwn(batch) => batch.pairs.len(),
        Command::Reconcile(telling) => telling.on_trip.len() + telling.pending.len(),
        Command::Configure(configure) => configure.document.len() / ENTRY,
        _ => 0,
    };
    BASE + entries * ENTRY
}

/// Roughly the memory that a queued window keeps alive.
fn window_weight(entry: &WindowEntry<'_>) -> usize {
    let decision = |decision: &WindowDecision| {
        64 * (decision.assignments.len() + decision.unmatched.len() + decision.excluded.len())
    };
    let snapshot = entry.snapshot;
    let edges = snapshot.edges().map_or(0, <[_]>::len);
    // requests are shared with the store; drivers are made anew for each snapshot
    1_024
        + 192 * snapshot.drivers().len()
        + 64 * (snapshot.requests().len() + edges)
        + decision(entry.decision)
        + entry.repaired.map_or(0, decision)
}
