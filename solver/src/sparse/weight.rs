//! The two number widths of the sparse solver.
//!
//! A weight is what a pair saves against leaving the request unmatched, so weights and prices lie
//! in `0..=max`, and the largest sum formed, a distance plus two prices, is below `3 · max`. An edge
//! and a heap entry are one integer each, number first and node second, so that comparing integers
//! orders by number and breaks ties by index.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An integer that weights, prices and distances are kept in.
pub(crate) trait Weight:
    Copy
    + Ord
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + AddAssign
    + SubAssign
    + 'static
{
    /// A number and a node in one integer.
    type Packed: Copy + Ord + Debug + Send + Sync;

    /// Zero.
    const ZERO: Self;
    /// Above every distance.
    const INFINITE: Self;
    /// Weights up to this leave room for `3 · max`.
    const LARGEST: i64;

    /// From an `i64` that is known to fit.
    fn narrow(value: i64) -> Self;
    /// To an `i64`.
    fn widen(self) -> i64;
    /// [`Weight::LARGEST`] as a weight.
    const TOP: Self;

    /// An edge: the heaviest comes first, then the lowest node.
    fn edge(self, node: u32) -> Self::Packed;
    /// How far the weight of an edge falls short of [`Weight::TOP`], and its node.
    fn short_of_top(edge: Self::Packed) -> (Self, u32);
    /// The weight and the node of an edge.
    fn of_edge(edge: Self::Packed) -> (Self, u32);
    /// A heap entry: the nearest comes first, then the lowest node.
    fn entry(self, node: u32) -> Self::Packed;
    /// The distance and the node of a heap entry.
    fn of_entry(entry: Self::Packed) -> (Self, u32);
}

macro_rules! weight {
    ($number:ty, $unsigned:ty, $packed:ty) => {
        impl Weight for $number {
            type Packed = $packed;
            const ZERO: Self = 0;
            const INFINITE: Self = <$number>::MAX;
            const TOP: Self = <$number>::MAX / 3;
            const LARGEST: i64 = Self::TOP as i64;

            #[inline]
            fn narrow(value: i64) -> Self {
                value as Self
            }
            #[inline]
            fn widen(self) -> i64 {
                i64::from(self)
            }
            #[inline]
            fn edge(self, node: u32) -> $packed {
                (Self::TOP - self).entry(node)
            }
            #[inline]
            fn short_of_top(edge: $packed) -> (Self, u32) {
                Self::of_entry(edge)
            }
            #[inline]
            fn of_edge(edge: $packed) -> (Self, u32) {
                let (short, node) = Self::of_entry(edge);
                (Self::TOP - short, node)
            }
            #[inline]
            fn entry(self, node: u32) -> $packed {
                (<$packed>::from(self as $unsigned) << 32) | <$packed>::from(node)
            }
            #[inline]
            fn of_entry(entry: $packed) -> (Self, u32) {
                ((entry >> 32) as Self, entry as u32)
            }
        }
    };
}

weight!(i32, u32, u64);
weight!(i64, u64, u128);
