//! The scored span of a run, cut into blocks of request time.

use jiff::{Timestamp, tz::TimeZone};

use super::interval::DrawnFrom;
use crate::domain::{DurationMs, UnixMs};

const MINUTE_MS: i64 = 60_000;
/// Longest warm-up: the fleet has to spread before a run says anything.
const WARM_UP_MS: i64 = 15 * MINUTE_MS;
/// Under this span blocks are short.
const SHORT_SPAN_MS: i64 = 240 * MINUTE_MS;

/// From this span on a recording shows how days differ.
const SEVERAL_DAYS_MS: i64 = 48 * 60 * MINUTE_MS;

/// The blocks of a span. They lie on the clock, so that each lies in one hour of the day; an end of
/// the span that covers less than half a block belongs to the block beside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    /// First request time scored.
    pub(super) from: UnixMs,
    /// First request time no longer scored.
    pub(super) to: UnixMs,
    /// Length of a block.
    pub(super) block: DurationMs,
    /// Number of blocks.
    pub(super) blocks: usize,
    /// Start of the first block.
    first_ms: i64,
}

impl Grid {
    /// The grid of demand that runs from `from` to `to`. Left out at its start is the warm-up of
    /// 15 minutes, at its end the cool-down of `max_wait`, each at most a tenth of the span.
    pub(super) fn of(from: UnixMs, to: UnixMs, max_wait: DurationMs) -> Self {
        let span_ms = (to - from).get().max(0);
        let block_ms = if span_ms < SHORT_SPAN_MS { 5 } else { 15 } * MINUTE_MS;
        let from = from + DurationMs::new(WARM_UP_MS.min(span_ms / 10));
        let to = to - DurationMs::new(max_wait.get().min(span_ms / 10));
        // to the nearest line of the clock grid
        let line = |at: UnixMs| (at.get() + block_ms / 2).div_euclid(block_ms) * block_ms;
        let (first_ms, last_ms) = (line(from), line(to));
        Self {
            from,
            to,
            block: DurationMs::new(block_ms),
            blocks: ((last_ms - first_ms) / block_ms).max(1) as usize,
            first_ms,
        }
    }

    /// The block of a request time; none for a time that is not scored.
    pub(super) fn block_of(&self, at: UnixMs) -> Option<usize> {
        if at < self.from || at >= self.to {
            return None;
        }
        let block = (at.get() - self.first_ms).div_euclid(self.block.get());
        Some(block.clamp(0, self.blocks as i64 - 1) as usize)
    }

    /// What may stand in for a block when they are resampled.
    pub(super) fn drawn_from(&self) -> DrawnFrom {
        if self.blocks as i64 * self.block.get() >= SEVERAL_DAYS_MS {
            DrawnFrom::Anywhere
        } else {
            DrawnFrom::Nearby
        }
    }

    /// When a block begins.
    pub(super) fn start(&self, block: usize) -> UnixMs {
        UnixMs::new(self.first_ms + block as i64 * self.block.get())
    }

    /// The hour of the day of each block, at its middle.
    pub(super) fn hours(&self, tz: &TimeZone) -> Vec<u8> {
        let middle = |block: usize| self.start(block).get() + self.block.get() / 2;
        (0..self.blocks)
            .map(|block| {
                Timestamp::from_millisecond(middle(block))
                    .map_or(0, |at| tz.to_datetime(at).hour().unsigned_abs())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 60 * MINUTE_MS;

    fn grid(from_min: i64, to_min: i64) -> Grid {
        let at = |min: i64| UnixMs::new(min * MINUTE_MS);
        Grid::of(at(from_min), at(to_min), DurationMs::new(10 * MINUTE_MS))
    }

    #[test]
    fn a_short_span_has_blocks_of_five_minutes_and_loses_a_tenth_at_most() {
        // 105 minutes: 10.5 of warm-up, 10 of cool-down
        let grid = grid(0, 105);
        assert_eq!(grid.from.get(), 10 * MINUTE_MS + 30_000);
        assert_eq!(grid.to.get(), 95 * MINUTE_MS);
        assert_eq!((grid.block.get(), grid.blocks), (5 * MINUTE_MS, 17));
        let at = |ms: i64| grid.block_of(UnixMs::new(ms));
        assert_eq!(at(grid.from.get() - 1), None);
        assert_eq!(at(grid.from.get()), Some(0));
        assert_eq!(at(15 * MINUTE_MS), Some(1));
        assert_eq!(at(grid.to.get() - 1), Some(16));
        assert_eq!(at(grid.to.get()), None);
    }

    #[test]
    fn a_day_has_blocks_of_a_quarter_of_an_hour_each_in_one_hour() {
        let grid = grid(7, 7 + 24 * 60);
        assert_eq!(grid.block.get(), 15 * MINUTE_MS);
        // from 0:22 to 23:57: the first block from the nearest line, 0:15, the last to 24:00
        assert_eq!(grid.blocks, 95);
        let hours = grid.hours(&TimeZone::UTC);
        assert_eq!((hours[0], hours[2], hours[3], hours[94]), (0, 0, 1, 23));
        let dhaka = TimeZone::get("Asia/Dhaka").unwrap();
        assert_eq!(grid.hours(&dhaka)[0], 6);
        assert_eq!(grid.block_of(UnixMs::new(HOUR_MS)), Some(3));
    }

    #[test]
    fn no_span_is_one_empty_block() {
        let grid = grid(5, 5);
        assert_eq!(grid.blocks, 1);
        assert_eq!(grid.block_of(UnixMs::new(5 * MINUTE_MS)), None);
    }
}
