//! Quarters of an hour of the week, on the clock of a time zone.

use jiff::{Timestamp, tz::TimeZone};

use crate::domain::{DurationMs, UnixMs};

/// Length of a slot.
pub const SLOT: DurationMs = DurationMs::new(15 * 60 * 1000);

/// Slots of a week.
pub const SLOTS: usize = 7 * SLOTS_A_DAY;

/// Slots of a day.
pub(super) const SLOTS_A_DAY: usize = 24 * 4;

/// A quarter of an hour of the week: 0 is Monday from midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeekSlot(u16);

impl WeekSlot {
    /// The slot of that number, below [`SLOTS`].
    pub fn new(slot: u16) -> Option<Self> {
        (usize::from(slot) < SLOTS).then_some(Self(slot))
    }

    /// Its number, below [`SLOTS`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its number among the slots of a day.
    pub(super) fn of_day(self) -> usize {
        self.index() % SLOTS_A_DAY
    }

    /// Whether it lies on a Saturday or Sunday.
    pub(super) fn on_weekend(self) -> bool {
        self.index() / SLOTS_A_DAY >= 5
    }
}

/// Tells the slot of an instant.
#[derive(Debug, Clone, PartialEq)]
pub struct WeekClock(TimeZone);

impl WeekClock {
    /// The clock of a zone; none if there is no zone of that name.
    pub fn of(zone: &str) -> Option<Self> {
        TimeZone::get(zone).ok().map(Self)
    }

    /// The zone's name.
    pub fn zone(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The slot of an instant.
    pub fn slot(&self, at: UnixMs) -> WeekSlot {
        // an instant beyond the calendar has no week; any slot would do
        let stamp = Timestamp::from_millisecond(at.get()).unwrap_or_default();
        let local = self.0.to_datetime(stamp);
        let day = local.weekday().to_monday_zero_offset().unsigned_abs();
        let quarter = local.hour().unsigned_abs() * 4 + local.minute().unsigned_abs() / 15;
        WeekSlot(u16::from(day) * SLOTS_A_DAY as u16 + u16::from(quarter))
    }

    /// The parts of slots from `from` to `to`, in order. Zones differ by whole quarters of an hour
    /// from UTC, so slots lie on quarters of UTC.
    pub fn parts(
        &self,
        from: UnixMs,
        to: UnixMs,
    ) -> impl Iterator<Item = (WeekSlot, DurationMs)> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let slot_ms = SLOT.get();
            let next = UnixMs::new((at.get().div_euclid(slot_ms) + 1) * slot_ms);
            let part = (self.slot(at), next.min(to) - at);
            (at < to).then(|| {
                at = next.min(to);
                part
            })
        })
    }
}

/// Whether an instant has a date.
pub(super) fn on_calendar(at: UnixMs) -> bool {
    Timestamp::from_millisecond(at.get()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_the_clock_of_the_zone() {
        let at = |text: &str| UnixMs::new(text.parse::<Timestamp>().unwrap().as_millisecond());
        let utc = WeekClock::of("UTC").unwrap();
        // a Monday
        assert_eq!(utc.slot(at("2024-01-01T00:14:59Z")).index(), 0);
        assert_eq!(utc.slot(at("2024-01-01T00:15:00Z")).index(), 1);
        assert_eq!(utc.slot(at("2024-01-07T23:59:00Z")).index(), SLOTS - 1);
        assert!(utc.slot(at("2024-01-06T12:00:00Z")).on_weekend());
        let kathmandu = WeekClock::of("Asia/Kathmandu").unwrap();
        assert_eq!(kathmandu.slot(at("2023-12-31T18:15:00Z")).index(), 0);
        assert_eq!(kathmandu.zone(), "Asia/Kathmandu");
        // summer time: the same UTC quarter is another local one
        let new_york = WeekClock::of("America/New_York").unwrap();
        let (winter, summer) = (at("2024-01-01T17:00:00Z"), at("2024-07-01T16:00:00Z"));
        assert_eq!(new_york.slot(winter), new_york.slot(summer));
    }

    #[test]
    fn the_parts_of_a_span_add_up_to_it() {
        let clock = WeekClock::of("UTC").unwrap();
        let minute = 60_000;
        let span = |from: i64, to: i64| {
            let parts = clock.parts(UnixMs::new(from * minute), UnixMs::new(to * minute));
            parts
                .map(|(slot, part)| (slot.index() % 4, part.get() / minute))
                .collect::<Vec<_>>()
        };
        assert_eq!(span(10, 50), [(0, 5), (1, 15), (2, 15), (3, 5)]);
        assert_eq!(span(16, 20), [(1, 4)]);
        assert_eq!(span(15, 30), [(1, 15)]);
        assert_eq!(span(5, 5), []);
        assert_eq!(span(6, 5), []);
    }
}
