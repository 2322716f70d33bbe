//! How to record, and who hears of trouble.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::{
    domain::NodeId,
    store::{Clock, SystemClock},
};

/// What the writer tells of its troubles, for logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordTrouble {
    /// The disk refused: entries are dropped until it accepts again.
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: Arc<str>,
    },
    /// An entry could not be written as JSON: a defect. It is left out.
    Encode {
        /// What the encoder said.
        error: Arc<str>,
    },
}

/// Hears of the writer's troubles, on the writer's thread.
pub type OnTrouble = Arc<dyn Fn(&RecordTrouble) + Send + Sync>;

/// How to record.
#[derive(Clone)]
pub struct RecordOptions {
    /// The directory that holds a directory for each run of a node; it is made if needed.
    pub directory: PathBuf,
    /// The node.
    pub node: NodeId,
    /// Most bytes on disk of all runs of this node; the oldest segments go first. At least
    /// [`MIN_MAX_BYTES`].
    pub max_bytes: Option<u64>,
    /// A segment ends at this size, or at a quarter of `max_bytes` if that is less.
    pub segment_bytes: u64,
    /// A segment ends at this age.
    pub segment_age: Duration,
    /// What was recorded reaches the operating system at least this often.
    pub flush_every: Duration,
    /// What was recorded reaches the disk at least this often.
    pub sync_every: Duration,
    /// Memory that entries may take while they wait for the writer, roughly.
    pub queue_bytes: usize,
    /// Tells the time that stands in headers.
    pub clock: Arc<dyn Clock>,
    /// Hears of the writer's troubles.
    pub on_trouble: Option<OnTrouble>,
}

/// The least that [`RecordOptions::max_bytes`] may be.
pub const MIN_MAX_BYTES: u64 = 64 * 1024;

impl RecordOptions {
    /// The options of a node that records into `directory`, without a limit of its size.
    pub fn new(directory: PathBuf, node: NodeId) -> Self {
        Self {
            directory,
            node,
            max_bytes: None,
            segment_bytes: 64 << 20,
            segment_age: Duration::from_mins(15),
            flush_every: Duration::from_millis(500),
            sync_every: Duration::from_secs(5),
            queue_bytes: 64 << 20,
            clock: Arc::new(SystemClock),
            on_trouble: None,
        }
    }
}
