//! The record of a live node: what it took in and what it decided, as a log that can be replayed.
//!
//! A **run** of a node is a directory of numbered **segments**; a segment is a sequence of **blocks**
//! (see `block`), each one zstd frame of whole JSON lines, so `zstd -dc` reads it. A segment stands for
//! itself: it begins with a header, and snapshots in it are told in full before they are told as
//! deltas. `docs/RECORD.md` describes every line.
//!
//! Promises:
//! - Recording never blocks the service. What the writer cannot take in time is dropped, counted and
//!   told in the log as a gap, in the place where it is missing.
//! - A killed process loses at most `flush_every` (half a second) and what was queued; a machine that
//!   loses power, at most `sync_every` (five seconds) more. The torn tail is cut and counted by the
//!   reader; no repair is needed, and the next run writes a directory of its own.
//! - A window that is read back is the window that was recorded, bit for bit, and decides the same.
//! - Damage anywhere else is an error that names file and offset, never a silent loss.
//! - The disk's refusals stop the recording, not the service: they are counted, told to a callback,
//!   and once the disk accepts again, told in the log.
//!
//! Assumes that one process writes a run, and that deltas of a region reach [`Recorder::window`] in
//! the order in which they should be verified. Not recorded: the protocol's own steps (taking,
//! claiming and sealing windows, leadership, sweeps), since windows tell their outcome; answers of
//! own windows as bytes; and the ETA model, which is the straight line of the configuration.

mod block;
mod coalesce;
mod demand;
mod entry;
mod files;
mod merge;
mod options;
mod reader;
mod recompute;
mod recorder;
mod segments;
mod stats;
mod store;
mod validity;
mod verify;
mod wire;
mod wire_ahead;
mod wire_decision;
mod writer;

pub use demand::{
    RecordedDemand, RecordedDriver, RecordedRegion, RecordedRequest, read_recorded_demand,
};
pub use entry::{
    CommandEntry, End, Entry, Gap, GapCause, Header, LOG_FORMAT, Lost, RecordedWindow, SupplyEntry,
    WindowEntry, WindowSource,
};
pub use files::is_record;
pub use options::{MIN_MAX_BYTES, OnTrouble, RecordOptions, RecordTrouble};
pub use reader::{LogError, LogReader, MissingBlocks, Position, ReadAccount, TornTail};
pub use recorder::Recorder;
pub use stats::RecordStats;
pub use store::RecordingStore;
pub use verify::{BySource, Difference, Step, Tally, VerifyReport, verify};
