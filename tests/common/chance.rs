//! Seeded numbers for what is built rather than drawn by proptest.

use kheya::domain::Draw;

/// A stream of numbers that is the same for the same seed, on every machine.
pub(crate) struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// A number in `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.next().below(count)
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.next().unit_f64()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    fn next(&mut self) -> Draw {
        self.drawn += 1;
        Draw::new(self.seed, "test").number(self.drawn)
    }
}
