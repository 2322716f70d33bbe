//! Driver prices that the solve of a window starts from.
//!
//! A window alone hardly ever has any: a driver that the window before left free has price 0 (that is
//! complementary slackness), and one that it matched is gone. A window that looks ahead has many: those
//! of drivers that are planned, or kept for who comes next. So there they are for the wider solve, and
//! the window alone starts from nothing.
//!
//! Promise: they change the work of a decision and may choose between assignments of the same cost;
//! they never change the cost. They are part of the snapshot and of its hash, since the same snapshot
//! must give the same assignment.

use std::collections::BTreeMap;

use kheya_solver::Solution;
use serde::{Deserialize, Serialize};

use super::{SnapshotError, WindowSnapshot};
use crate::domain::DriverId;

/// Largest price that a snapshot takes, in milliseconds: more than any driver saves, some 31 years.
pub const MAX_WARM_PRICE_MS: i64 = 1_000_000_000_000;

/// Prices of drivers in milliseconds, say those of the window before; a driver without one starts at
/// 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WarmStart(BTreeMap<DriverId, i64>);

impl WarmStart {
    /// Those of the prices that are above 0: the others say nothing.
    pub fn new(prices: impl IntoIterator<Item = (DriverId, i64)>) -> Self {
        Self(prices.into_iter().filter(|(_, price)| *price > 0).collect())
    }

    /// The prices of a solution whose columns are these drivers of a snapshot.
    pub(super) fn of(snapshot: &WindowSnapshot, columns: &[u32], solution: &Solution) -> Self {
        let columns = columns.iter().zip(&solution.driver_prices);
        Self::new(columns.map(|(&driver, &price)| {
            let id = snapshot.drivers()[driver as usize].id.clone();
            (id, price)
        }))
    }

    /// Whether no driver has a price.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The price of a driver, 0 without one.
    pub fn price_ms(&self, driver: &DriverId) -> i64 {
        self.0.get(driver).copied().unwrap_or(0)
    }
}

impl WindowSnapshot {
    /// The prices that the drivers of a graph's columns start from; none where none of them has one.
    pub(super) fn warm_prices(&self, columns: &[u32]) -> Option<Vec<i64>> {
        let given = self.warm_start();
        if given.is_empty() {
            return None;
        }
        let price = |&driver: &u32| given.price_ms(&self.drivers()[driver as usize].id);
        let prices: Vec<i64> = columns.iter().map(price).collect();
        prices.iter().any(|&price| price > 0).then_some(prices)
    }

    /// The same, solved from these prices.
    ///
    /// # Errors
    /// Every driver that is not in the snapshot, and every price outside 1 to
    /// [`MAX_WARM_PRICE_MS`], each with its path.
    pub fn with_warm_start(self, warm_start: WarmStart) -> Result<Self, Vec<SnapshotError>> {
        let mut errors = Vec::new();
        for (id, &price) in &warm_start.0 {
            let path = || format!("warm_start.{id}");
            let drivers = self.drivers();
            if drivers
                .binary_search_by(|driver| driver.id.cmp(id))
                .is_err()
            {
                errors.push(SnapshotError::UnknownId {
                    path: path(),
                    kind: "driver",
                    id: id.to_string(),
                });
            }
            if !(1..=MAX_WARM_PRICE_MS).contains(&price) {
                errors.push(SnapshotError::OutOfRange {
                    path: path(),
                    value: price as f64,
                    min: 1.0,
                    max: MAX_WARM_PRICE_MS as f64,
                });
            }
        }
        if errors.is_empty() {
            Ok(self.solved_from(warm_start))
        } else {
            Err(errors)
        }
    }
}
