//! One written time: ISO 8601, an epoch number, or a slashed or dashed date.
//!
//! A date such as `01/02/2013` has no meaning of its own: it is kept as its three numbers until
//! the order of its whole column is known.

use jiff::{civil, tz::TimeZone};

use super::options::DateOrder;
use crate::domain::UnixMs;

/// Latest instant that is read, the end of the year 9999, in milliseconds; its negative is the
/// earliest.
const MAX_ABS_MS: i64 = 253_402_300_799_999;

const MS_PER_DAY: i64 = 86_400_000;

/// What one time field says, as far as it can be known alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stamp {
    /// Nothing is written.
    Missing,
    /// Not a time, or one that its time zone skips.
    Bad,
    /// An instant, in Unix milliseconds.
    At(UnixMs),
    /// A number since the epoch, in a unit that its column decides.
    Epoch(f64),
    /// A date whose order its column decides.
    Loose(LooseDate),
}

/// Three numbers of a date in the order they were written, and the time of day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LooseDate {
    first: u8,
    second: u8,
    third: u16,
    short_year: bool,
    offset_min: Option<i16>,
    day_ms: u32,
}

/// A clock reading without a date order: what a time text parses to before its zone is applied.
enum Written {
    Date(civil::Date, Clock),
    Loose(LooseDate),
}

/// Time of day, and the offset from UTC if one was written.
#[derive(Clone, Copy, Default)]
struct Clock {
    day_ms: u32,
    offset_min: Option<i16>,
}

impl Stamp {
    /// Reads a time text; wall-clock times are read in `tz`.
    pub(crate) fn parse(text: &[u8], tz: &TimeZone) -> Self {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Self::Missing;
        }
        if let Some(number) = parse_number(text) {
            return Self::Epoch(number);
        }
        match parse_written(text) {
            Some(Written::Date(date, clock)) => {
                let wall = wall_ms(date) + i64::from(clock.day_ms);
                instant(wall, clock.offset_min, tz).map_or(Self::Bad, Self::At)
            }
            Some(Written::Loose(date)) => Self::Loose(date),
            None => Self::Bad,
        }
    }

    /// A wall-clock time, in milliseconds since 1970-01-01T00:00 on that clock.
    pub(crate) fn from_wall_ms(wall: i64, tz: &TimeZone) -> Self {
        instant(wall, None, tz).map_or(Self::Bad, Self::At)
    }

    /// An instant in Unix milliseconds, if it is in the range that is read.
    pub(crate) fn from_unix_ms(ms: i64) -> Self {
        if (-MAX_ABS_MS..=MAX_ABS_MS).contains(&ms) {
            Self::At(UnixMs::new(ms))
        } else {
            Self::Bad
        }
    }
}

impl LooseDate {
    /// The date in this order, if it exists.
    pub(crate) fn date(self, order: DateOrder) -> Option<civil::Date> {
        let (year, month, day) = match order {
            DateOrder::Mdy => (self.third, self.first, self.second),
            DateOrder::Dmy => (self.third, self.second, self.first),
            DateOrder::Ymd if self.short_year => {
                let day = u8::try_from(self.third).ok()?;
                (u16::from(self.first), self.second, day)
            }
            DateOrder::Ymd => return None,
        };
        let year = if self.short_year { 2000 + year } else { year };
        civil::Date::new(
            i16::try_from(year).ok()?,
            i8::try_from(month).ok()?,
            i8::try_from(day).ok()?,
        )
        .ok()
    }

    /// The instant in this order, if the date and the clock time exist.
    pub(crate) fn at(self, order: DateOrder, tz: &TimeZone) -> Option<UnixMs> {
        let wall = wall_ms(self.date(order)?) + i64::from(self.day_ms);
        instant(wall, self.offset_min, tz)
    }

    /// The date as it was written, for messages.
    pub(crate) fn written(self) -> String {
        if self.short_year {
            format!("{:02}/{:02}/{:02}", self.first, self.second, self.third)
        } else {
            format!("{:02}/{:02}/{}", self.first, self.second, self.third)
        }
    }
}

/// Milliseconds from 1970-01-01 to the start of `date`, on the wall clock.
fn wall_ms(date: civil::Date) -> i64 {
    const EPOCH: civil::Date = civil::date(1970, 1, 1);
    let days = date.duration_since(EPOCH).as_secs() / 86_400;
    days * MS_PER_DAY
}

/// The instant of a wall-clock time: the earlier one when the clock shows it twice, none when the
/// clock skips it.
fn instant(wall: i64, offset_min: Option<i16>, tz: &TimeZone) -> Option<UnixMs> {
    use jiff::tz::AmbiguousOffset as Offset;
    if !(-MAX_ABS_MS..=MAX_ABS_MS).contains(&wall) {
        return None;
    }
    let offset_s = match offset_min {
        Some(minutes) => i64::from(minutes) * 60,
        None if *tz == TimeZone::UTC => 0,
        None => {
            let seconds = wall.div_euclid(1000);
            let date_time =
                civil::date(1970, 1, 1).at(0, 0, 0, 0) + jiff::SignedDuration::from_secs(seconds);
            match tz.to_ambiguous_timestamp(date_time).offset() {
                Offset::Unambiguous { offset } => i64::from(offset.seconds()),
                Offset::Fold { before, after } => i64::from(before.seconds().max(after.seconds())),
                Offset::Gap { .. } => return None,
            }
        }
    };
    Some(UnixMs::new(wall - offset_s * 1000))
}

/// A plain decimal number, finite.
fn parse_number(text: &[u8]) -> Option<f64> {
    let plain = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    if !text.iter().all(plain) {
        return None;
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// A cursor over the bytes of a time text.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// Up to `most` digits as a number, with how many there were.
    fn digits(&mut self, most: usize) -> Option<(u32, usize)> {
        let count = self
            .0
            .iter()
            .take(most)
            .take_while(|b| b.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at(count);
        if digits.is_empty() {
            return None;
        }
        self.0 = rest;
        Some((
            digits.iter().fold(0, |n, b| n * 10 + u32::from(b - b'0')),
            count,
        ))
    }

    fn take(&mut self, accept: impl Fn(u8) -> bool) -> Option<u8> {
        let (&next, rest) = self.0.split_first()?;
        accept(next).then(|| self.0 = rest)?;
        Some(next)
    }

    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }
}

fn parse_written(text: &[u8]) -> Option<Written> {
    let mut cursor = Cursor(text);
    let (first, width) = cursor.digits(8)?;
    if width == 8 {
        let date = date_of(first / 10_000, first / 100 % 100, first % 100)?;
        return Some(Written::Date(date, parse_clock(cursor)?));
    }
    let separator = cursor.take(|b| matches!(b, b'-' | b'/' | b'.'))?;
    let (second, second_width) = cursor.digits(2)?;
    cursor.take(|b| b == separator)?;
    let (third, third_width) = cursor.digits(4)?;
    let clock = parse_clock(cursor)?;
    if width == 4 && third_width <= 2 {
        return Some(Written::Date(date_of(first, second, third)?, clock));
    }
    let short_year = third_width == 2;
    let loose = width <= 2 && second_width <= 2 && (short_year || third_width == 4);
    loose.then_some(Written::Loose(LooseDate {
        first: first as u8,
        second: second as u8,
        third: third as u16,
        short_year,
        offset_min: clock.offset_min,
        day_ms: clock.day_ms,
    }))
}

fn date_of(year: u32, month: u32, day: u32) -> Option<civil::Date> {
    civil::Date::new(year as i16, month as i8, day as i8).ok()
}

/// The rest of a time text after its date: nothing, or a time of day with what may follow it.
fn parse_clock(mut cursor: Cursor<'_>) -> Option<Clock> {
    if cursor.0.is_empty() {
        return Some(Clock::default());
    }
    cursor.take(|b| matches!(b, b'T' | b't' | b' '))?;
    cursor.skip_spaces();
    let (mut hour, width) = cursor.digits(6)?;
    let (minute, second);
    if width == 6 || width == 4 {
        let compact = if width == 4 { hour * 100 } else { hour };
        (hour, minute, second) = (compact / 10_000, compact / 100 % 100, compact % 100);
    } else if width <= 2 {
        cursor.take(|b| b == b':')?;
        minute = cursor.digits(2)?.0;
        second = match cursor.take(|b| b == b':') {
            Some(_) => cursor.digits(2)?.0,
            None => 0,
        };
    } else {
        return None;
    }
    let millis = parse_fraction(&mut cursor)?;
    cursor.skip_spaces();
    if let Some(half) = cursor.take(|b| matches!(b, b'A' | b'a' | b'P' | b'p')) {
        cursor.take(|b| b == b'.');
        cursor.take(|b| matches!(b, b'M' | b'm'))?;
        cursor.take(|b| b == b'.');
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12
            + if half.eq_ignore_ascii_case(&b'p') {
                12
            } else {
                0
            };
        cursor.skip_spaces();
    }
    let offset_min = parse_offset(&mut cursor)?;
    let valid = hour < 24 && minute < 60 && second < 60 && cursor.0.is_empty();
    valid.then_some(Clock {
        day_ms: ((hour * 60 + minute) * 60 + second) * 1000 + millis,
        offset_min,
    })
}

/// Milliseconds of a decimal fraction, cut after the third digit; 0 when there is none.
fn parse_fraction(cursor: &mut Cursor<'_>) -> Option<u32> {
    if cursor.take(|b| matches!(b, b'.' | b',')).is_none() {
        return Some(0);
    }
    let (value, width) = cursor.digits(3)?;
    while cursor.take(|b| b.is_ascii_digit()).is_some() {}
    Some(value * 10_u32.pow(3 - width as u32))
}

/// Minutes east of UTC: `Z`, `UTC`, `+06`, `+06:00`, `-0500`; nothing is `Some(None)`.
#[expect(
    clippy::option_option,
    reason = "malformed, absent and present are three things"
)]
fn parse_offset(cursor: &mut Cursor<'_>) -> Option<Option<i16>> {
    if cursor.0.is_empty() {
        return Some(None);
    }
    for name in [&b"UTC"[..], b"GMT", b"Z", b"z"] {
        if cursor.0 == name {
            cursor.0 = &[];
            return Some(Some(0));
        }
    }
    let sign = if cursor.take(|b| matches!(b, b'+' | b'-'))? == b'-' {
        -1
    } else {
        1
    };
    let (hours, _) = cursor.digits(2)?;
    cursor.take(|b| b == b':');
    let minutes = if cursor.0.is_empty() {
        0
    } else {
        cursor.digits(2)?.0
    };
    (hours < 24 && minutes < 60).then(|| Some(sign * (hours * 60 + minutes) as i16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, zone: &str) -> Stamp {
        Stamp::parse(text.as_bytes(), &TimeZone::get(zone).unwrap())
    }

    fn ms(ms: i64) -> Stamp {
        Stamp::At(UnixMs::new(ms))
    }

    #[test]
    fn iso_times_read_with_and_without_t_fraction_and_offset() {
        for text in [
            "2013-01-01 00:00:01",
            "2013-01-01T00:00:01",
            " 2013-01-01T00:00:01Z ",
            "2013-01-01 00:00:01.000",
            "2013-01-01T06:00:01+06:00",
            "2013-01-01T06:00:01.000000 +0600",
            "2012-12-31 19:00:01 -05",
            "20130101T000001Z",
            "2013/01/01 12:00:01 AM",
            "2013-1-1 0:00:01 UTC",
        ] {
            assert_eq!(at(text, "UTC"), ms(1_356_998_401_000), "{text}");
        }
        assert_eq!(at("2013-01-01", "UTC"), ms(1_356_998_400_000));
        assert_eq!(at("2013-01-01 00:00", "UTC"), ms(1_356_998_400_000));
        assert_eq!(at("2013-01-01 00:00:00.1239", "UTC"), ms(1_356_998_400_123));
        assert_eq!(
            at("2013-01-01 00:00", "America/New_York"),
            ms(1_357_016_400_000)
        );
    }

    #[test]
    fn what_is_no_time_is_bad() {
        for text in [
            "yesterday",
            "2013-13-01",
            "2013-02-29",
            "2013-01-01 24:00:00",
            "2013-01-01 00:60",
            "2013-01-01 13:00 PM",
            "2013-01-01 00:00:00 somewhere",
            "2013-01-01T",
            "2013-01/01",
            "1/2",
            "2013-01-01 00:00:00+99:00",
            "-",
            "١٢٣",
        ] {
            assert_eq!(at(text, "UTC"), Stamp::Bad, "{text}");
        }
        assert_eq!(at("  ", "UTC"), Stamp::Missing);
    }

    #[test]
    fn numbers_wait_for_the_unit_of_their_column() {
        assert_eq!(
            at("1357016400000", "UTC"),
            Stamp::Epoch(1_357_016_400_000.0)
        );
        assert_eq!(at("1357016400.5", "UTC"), Stamp::Epoch(1_357_016_400.5));
        assert_eq!(at("1.3570164E9", "UTC"), Stamp::Epoch(1_357_016_400.0));
    }

    #[test]
    fn a_time_shown_twice_is_the_earlier_instant_and_a_skipped_one_is_bad() {
        // 2013-11-03: New York goes back from 02:00 EDT to 01:00 EST.
        assert_eq!(
            at("2013-11-03 01:30:00", "America/New_York"),
            ms(1_383_456_600_000)
        );
        assert_eq!(
            at("2013-11-03 02:00:00", "America/New_York"),
            ms(1_383_462_000_000)
        );
        // 2013-03-10: 02:00 EST is followed by 03:00 EDT.
        assert_eq!(at("2013-03-10 02:30:00", "America/New_York"), Stamp::Bad);
        assert_eq!(
            at("2013-03-10 03:00:00", "America/New_York"),
            ms(1_362_898_800_000)
        );
        // An offset in the text leaves nothing to guess.
        assert_eq!(
            at("2013-11-03 01:30:00-05:00", "America/New_York"),
            ms(1_383_460_200_000)
        );
    }

    #[test]
    fn a_loose_date_reads_in_every_order_that_exists() {
        let Stamp::Loose(date) = at("1/2/13 1:05 PM", "UTC") else {
            panic!("not loose")
        };
        assert_eq!(date.date(DateOrder::Mdy), Some(civil::date(2013, 1, 2)));
        assert_eq!(date.date(DateOrder::Dmy), Some(civil::date(2013, 2, 1)));
        assert_eq!(date.date(DateOrder::Ymd), Some(civil::date(2001, 2, 13)));
        assert_eq!(
            date.at(DateOrder::Mdy, &TimeZone::UTC),
            Some(UnixMs::new(1_357_131_900_000))
        );
        let Stamp::Loose(date) = at("31-01-2013", "UTC") else {
            panic!("not loose")
        };
        assert_eq!(date.date(DateOrder::Mdy), None);
        assert_eq!(date.date(DateOrder::Ymd), None);
        assert_eq!(date.written(), "31/01/2013");
    }
}
