//! A distribution in fixed memory.
//!
//! Counts in bins that each reach 1 % further than the one before (the idea of `DDSketch`: Masson,
//! Rim and Lee, 2019), so a quantile is known to about 1 % of itself, whatever the number of values
//! and their order.

/// Upper end of the first bin.
const FIRST: f64 = 1e-3;
/// How much further each bin reaches.
const GROWTH: f64 = 1.01;
/// 0.001 × 1.01^2048 is 700,000: waits in seconds and solve times in milliseconds both fit.
const BINS: usize = 2048;

/// Counts of values from 0 up, whatever their unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sketch {
    counts: Vec<u32>,
    total: u64,
}

impl Sketch {
    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; BINS],
            total: 0,
        }
    }

    /// Counts a value; one beyond the last bin is counted there.
    pub(super) fn add(&mut self, value: f64) {
        let bin = if value > FIRST {
            (libm::log(value / FIRST) / libm::log(GROWTH)).ceil() as usize
        } else {
            0
        };
        let count = &mut self.counts[bin.min(BINS - 1)];
        *count = count.saturating_add(1);
        self.total += 1;
    }

    /// Values counted.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Values up to `limit`, those of its bin in proportion.
    pub(super) fn up_to(&self, limit: f64) -> f64 {
        let mut sum = 0.0;
        for (bin, &count) in self.counts.iter().enumerate() {
            let (low, high) = edges(bin);
            if high <= limit {
                sum += f64::from(count);
                continue;
            }
            return sum + f64::from(count) * ((limit - low) / (high - low)).max(0.0);
        }
        sum
    }

    /// The value below which the share `q` lies; nothing without values.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.total as f64;
        let mut sum = 0.0;
        for (bin, &count) in self.counts.iter().enumerate() {
            let next = sum + f64::from(count);
            if count > 0 && next >= wanted {
                let (low, high) = edges(bin);
                return Some(
                    low + (high - low) * ((wanted - sum) / f64::from(count)).clamp(0.0, 1.0),
                );
            }
            sum = next;
        }
        None
    }
}

/// The ends of a bin.
fn edges(bin: usize) -> (f64, f64) {
    let end = |bin: usize| FIRST * libm::pow(GROWTH, bin as f64);
    let low = bin.checked_sub(1).map_or(0.0, end);
    (low, end(bin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_known_to_a_per_cent() {
        let mut sketch = Sketch::new();
        for value in 1..=10_000 {
            sketch.add(f64::from(value) / 10.0);
        }
        for q in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let found = sketch.quantile(q).unwrap();
            assert!((found / (1000.0 * q) - 1.0).abs() < 0.011, "{q}: {found}");
            let below = sketch.up_to(found) / 10_000.0;
            assert!((below - q).abs() < 0.001, "{q}: {below}");
        }
    }

    #[test]
    fn odd_values_are_counted_at_the_ends() {
        let mut sketch = Sketch::new();
        assert_eq!(sketch.quantile(0.5), None);
        for value in [-1.0, 0.0, f64::NAN, 1e300] {
            sketch.add(value);
        }
        assert_eq!(sketch.total(), 4);
        assert!(sketch.up_to(0.001) > 2.9 && sketch.up_to(1e301) > 3.9);
    }
}
