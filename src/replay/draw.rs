//! Random numbers that are the same on every machine.

use rand_chacha::rand_core::Rng;

/// Two independent standard normal numbers (Box–Muller).
pub(crate) fn gaussian_pair(random: &mut impl Rng) -> (f64, f64) {
    let radius = (-2.0 * libm::log(1.0 - unit(random))).sqrt();
    let angle = std::f64::consts::TAU * unit(random);
    (radius * libm::cos(angle), radius * libm::sin(angle))
}

/// A number in 0..1 with 53 random bits.
pub(crate) fn unit(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
