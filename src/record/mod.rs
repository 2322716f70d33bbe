//! The record of a live node: what it took in and what it decided, as a log that can be replayed.

mod block;
mod coalesce;
mod demand;
mod entry;
mod files;
mod reader;
mod recompute;
mod recorder;
mod segments;
mod store;
mod validity;
mod verify;
mod wire;
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
pub use reader::{LogError, LogReader, MissingBlocks, Position, ReadAccount, TornTail};
pub use recorder::{MIN_MAX_BYTES, OnTrouble, RecordOptions, RecordStats, RecordTrouble, Recorder};
pub use store::RecordingStore;
pub use verify::{BySource, Difference, Step, Tally, VerifyReport, verify};
