//! What a column of times decides for all its rows: the order of its dates, the unit of its
//! numbers.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::{
    options::DateOrder,
    times::{LooseDate, Stamp},
};
use crate::domain::UnixMs;

/// The evidence of one column of times, gathered over every row (of all files that have it).
#[derive(Debug, Clone)]
pub(crate) struct TimeColumn {
    /// The header.
    pub(crate) name: String,
    /// The file where it was first seen.
    pub(crate) file: PathBuf,
    /// Loose dates that at least one order can read.
    loose: u64,
    /// Of those, how many each order reads, in the order of [`DateOrder::ALL`].
    reads: [u64; 3],
    /// For each pair of orders, a date that both read, and differently.
    differs: [[Option<LooseDate>; 3]; 3],
    /// For each order, a date that it cannot read.
    fails: [Option<LooseDate>; 3],
    /// How many numbers look like seconds, milliseconds, microseconds, nanoseconds.
    units: [u64; 4],
}

/// What was decided for a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decided {
    order: DateOrder,
    ms_per_unit: f64,
}

impl TimeColumn {
    pub(crate) fn new(name: &str, file: &Path) -> Self {
        Self {
            name: name.to_owned(),
            file: file.into(),
            loose: 0,
            reads: [0; 3],
            differs: [[None; 3]; 3],
            fails: [None; 3],
            units: [0; 4],
        }
    }

    /// Counts one value.
    pub(crate) fn see(&mut self, stamp: Stamp) {
        match stamp {
            Stamp::Loose(date) => self.see_date(date),
            Stamp::Epoch(number) => {
                // 10^11 s is the year 5138 and 10^11 ms is 1973: no recorded demand lies between.
                let size = number.abs();
                let unit = [1e11, 1e14, 1e17]
                    .iter()
                    .filter(|&&limit| size >= limit)
                    .count();
                self.units[unit] += 1;
            }
            Stamp::Missing | Stamp::Bad | Stamp::At(_) => {}
        }
    }

    fn see_date(&mut self, loose: LooseDate) {
        let dates = DateOrder::ALL.map(|order| loose.date(order));
        if dates.iter().all(Option::is_none) {
            return;
        }
        self.loose += 1;
        for (i, date) in dates.iter().enumerate() {
            if date.is_some() {
                self.reads[i] += 1;
            } else if self.fails[i].is_none() {
                self.fails[i] = Some(loose);
            }
            for (j, other) in dates.iter().enumerate().skip(i + 1) {
                let both = date.is_some() && other.is_some();
                if both && date != other && self.differs[i][j].is_none() {
                    self.differs[i][j] = Some(loose);
                }
            }
        }
    }

    /// Decides, and says what was decided where there was a choice.
    ///
    /// # Errors
    /// A sentence fragment, when the order of day and month cannot be known from the rows.
    pub(crate) fn decide(
        &self,
        asked: Option<DateOrder>,
    ) -> Result<(Decided, Option<String>), String> {
        let (order, note) = match asked {
            Some(order) => {
                let note = (self.loose > 0).then(|| {
                    format!(
                        "dates of {:?} were read as {}, as asked",
                        self.name,
                        order.name()
                    )
                });
                (order, note)
            }
            None if self.loose == 0 => (DateOrder::Ymd, None),
            None => self.only_order()?,
        };
        let decided = Decided {
            order,
            ms_per_unit: self.ms_per_unit(),
        };
        Ok((decided, note))
    }

    fn only_order(&self) -> Result<(DateOrder, Option<String>), String> {
        let fitting: Vec<usize> = (0..3).filter(|&i| self.reads[i] == self.loose).collect();
        let Some(&first) = fitting.first() else {
            let examples: Vec<_> = (0..3)
                .filter(|&i| self.reads[i] > 0)
                .filter_map(|i| {
                    let date = self.fails[i]?.written();
                    Some(format!("{} fails on {date}", DateOrder::ALL[i].name()))
                })
                .collect();
            return Err(format!(
                "no one order of dates reads every row ({})",
                examples.join(", ")
            ));
        };
        let order = DateOrder::ALL[first];
        for &other in &fitting[1..] {
            if let Some(date) = self.differs[first][other] {
                return Err(format!(
                    "dates such as {} can be read as {} and as {}",
                    date.written(),
                    order.name(),
                    DateOrder::ALL[other].name()
                ));
            }
        }
        let why = if fitting.len() == 1 {
            "the one order that reads every row"
        } else {
            "every order that reads all rows gives the same dates"
        };
        let note = format!(
            "dates of {:?} were read as {}: {why}",
            self.name,
            order.name()
        );
        Ok((order, Some(note)))
    }

    /// A header that ends in `_ms` says its unit; else the size of most numbers does.
    fn ms_per_unit(&self) -> f64 {
        if self.name.to_ascii_lowercase().ends_with("_ms") {
            return 1.0;
        }
        let most = (0..4).max_by_key(|&i| (self.units[i], 4 - i)).unwrap_or(0);
        [1000.0, 1.0, 1e-3, 1e-6][most]
    }
}

impl Decided {
    /// The instant of a value of the column: `Ok(None)` when there is none, `Err` when it cannot
    /// be read.
    pub(crate) fn at(self, stamp: Stamp, tz: &TimeZone) -> Result<Option<UnixMs>, BadTime> {
        match stamp {
            Stamp::Missing => Ok(None),
            Stamp::Bad => Err(BadTime),
            Stamp::At(at) => Ok(Some(at)),
            Stamp::Loose(date) => date.at(self.order, tz).map(Some).ok_or(BadTime),
            Stamp::Epoch(number) => {
                let ms = (number * self.ms_per_unit).round();
                match Stamp::from_unix_ms(ms as i64) {
                    Stamp::At(at) => Ok(Some(at)),
                    _ => Err(BadTime),
                }
            }
        }
    }
}

/// A time that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadTime;

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, texts: &[&str]) -> TimeColumn {
        let mut column = TimeColumn::new(name, Path::new("t"));
        for text in texts {
            column.see(Stamp::parse(text.as_bytes(), &TimeZone::UTC));
        }
        column
    }

    fn order(texts: &[&str]) -> Result<DateOrder, String> {
        column("t", texts)
            .decide(None)
            .map(|(decided, _)| decided.order)
    }

    #[test]
    fn the_one_order_that_reads_every_row_is_used() {
        assert_eq!(order(&["01/02/2013", "01/13/2013"]), Ok(DateOrder::Mdy));
        assert_eq!(order(&["01/02/2013", "13/01/2013"]), Ok(DateOrder::Dmy));
        assert_eq!(
            order(&["31-12-13", "30-12-13"]).ok(),
            None,
            "ymd reads 2031-12-13"
        );
        assert_eq!(
            order(&["13-02-25", "13-02-28"]).ok(),
            None,
            "dmy reads 2025-02-13"
        );
        assert_eq!(order(&["45-02-25"]), Ok(DateOrder::Ymd));
        assert_eq!(order(&["25-02-45"]), Ok(DateOrder::Dmy));
        assert_eq!(order(&["02-25-45"]), Ok(DateOrder::Mdy));
    }

    #[test]
    fn orders_that_agree_need_no_choice_and_orders_that_differ_do() {
        assert!(order(&["01/01/2013", "02/02/2013"]).is_ok());
        let text = order(&["01/01/2013", "02/03/2013"]).unwrap_err();
        assert_eq!(
            text,
            "dates such as 02/03/2013 can be read as mdy and as dmy"
        );
    }

    #[test]
    fn no_common_order_is_said_with_examples() {
        let text = order(&["01/13/2013", "13/01/2013"]).unwrap_err();
        assert!(text.contains("mdy fails on 13/01/2013"), "{text}");
        assert!(text.contains("dmy fails on 01/13/2013"), "{text}");
    }

    #[test]
    fn a_date_that_exists_in_no_order_has_no_vote() {
        assert_eq!(order(&["01/13/2013", "99/99/2013"]), Ok(DateOrder::Mdy));
    }

    #[test]
    fn the_unit_of_numbers_is_that_of_most_or_of_the_name() {
        for (name, text, ms) in [
            ("t", "1357016400", 1_357_016_400_000),
            ("t", "1357016400.25", 1_357_016_400_250),
            ("t", "1357016400000", 1_357_016_400_000),
            ("t", "1357016400000000", 1_357_016_400_000),
            ("requested_at_ms", "61000", 61_000),
        ] {
            let column = column(name, &[text]);
            let (decided, _) = column.decide(None).unwrap();
            let stamp = Stamp::parse(text.as_bytes(), &TimeZone::UTC);
            assert_eq!(
                decided.at(stamp, &TimeZone::UTC),
                Ok(Some(UnixMs::new(ms))),
                "{text}"
            );
        }
        let (decided, _) = column("t", &["1e300"]).decide(None).unwrap();
        assert_eq!(
            decided.at(Stamp::Epoch(1e300), &TimeZone::UTC),
            Err(BadTime)
        );
    }
}
