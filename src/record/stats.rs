//! What was recorded so far, counted by the handle and the writer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What was recorded so far, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordStats {
    /// Lines written.
    pub lines: u64,
    /// Bytes written, packed.
    pub bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Entries that were dropped, whatever the cause.
    pub dropped: u64,
    /// Times that the disk refused.
    pub disk_errors: u64,
    /// Entries that could not be encoded.
    pub encode_errors: u64,
    /// Segments deleted to keep below the limit.
    pub deleted: u64,
    /// Memory that waiting entries take, roughly.
    pub queued_bytes: u64,
    /// The most that they may take.
    pub queue_bytes: u64,
}

/// Counts that the handle and the writer share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) queued: AtomicUsize,
    pub(super) dropped: AtomicU64,
    pub(super) lines: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) segments: AtomicU64,
    pub(super) disk_errors: AtomicU64,
    pub(super) encode_errors: AtomicU64,
    pub(super) deleted: AtomicU64,
}

impl Shared {
    /// The counts; the queue's limit is not among them.
    pub(super) fn stats(&self) -> RecordStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordStats {
            lines: read(&self.lines),
            bytes: read(&self.bytes),
            segments: read(&self.segments),
            dropped: read(&self.dropped),
            disk_errors: read(&self.disk_errors),
            encode_errors: read(&self.encode_errors),
            deleted: read(&self.deleted),
            queued_bytes: self.queued.load(Ordering::Relaxed) as u64,
            queue_bytes: 0,
        }
    }
}
