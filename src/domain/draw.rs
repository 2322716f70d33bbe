//! Random draws as pure functions: the same seed and words give the same luck everywhere.
//!
//! A draw is the xxh3 hash of a seed, a purpose and the ids it concerns. There is no generator to
//! advance, so a draw depends neither on the order of the work nor on what else was drawn: two
//! policies that meet the same request share its luck, and adding a draw changes no other one.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A draw in the making: each word added gives a new, independent draw. Words are hashed one by
/// one, so `("ab", "c")` and `("a", "bc")` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw(u64);

impl Draw {
    /// The draw of `seed` for `purpose`, for example `"dropoff"`: different purposes never share
    /// their luck.
    pub fn new(seed: u64, purpose: &str) -> Self {
        Self(seed).text(purpose)
    }

    /// This draw for one more text, such as an id.
    #[must_use]
    pub fn text(self, word: &str) -> Self {
        Self(xxh3_64_with_seed(word.as_bytes(), self.0))
    }

    /// This draw for one more number, such as an attempt.
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        Self(xxh3_64_with_seed(&number.to_le_bytes(), self.0))
    }

    /// 64 even bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Uniform in 0 ≤ x < 1, a multiple of 2⁻⁵³.
    pub fn unit_f64(self) -> f64 {
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0 ≤ i < `count` (the bias is below `count` / 2⁶⁴); 0 when `count` is 0.
    pub fn below(self, count: usize) -> usize {
        ((u128::from(self.0) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_pinned_for_ever() {
        let draw = Draw::new(7, "dropoff").text("r1").number(2);
        assert_eq!(draw, Draw::new(7, "dropoff").text("r1").number(2));
        assert_eq!(draw.bits(), 3_798_977_548_843_343_073);
    }

    #[test]
    fn seed_purpose_and_every_word_matter() {
        let base = Draw::new(1, "a").text("bc");
        for other in [
            Draw::new(2, "a").text("bc"),
            Draw::new(1, "ab").text("c"),
            Draw::new(1, "a").text("bd"),
            base.text(""),
            base.number(0),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn unit_draws_fill_the_unit_interval_evenly() {
        let mut tenths = [0_u32; 10];
        for i in 0..10_000 {
            let draw = Draw::new(3, "even").number(i);
            let unit = draw.unit_f64();
            assert!((0.0..1.0).contains(&unit));
            assert_eq!(draw.below(10), (unit * 10.0) as usize);
            tenths[draw.below(10)] += 1;
        }
        assert!(
            tenths.iter().all(|&n| (850..1150).contains(&n)),
            "{tenths:?}"
        );
        assert_eq!(Draw::new(3, "none").below(0), 0);
    }
}
