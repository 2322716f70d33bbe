//! Windows: `open → taken(owner) → sealed`, on a grid, numbered without gaps.
//!
//! Which requests a window decides is not written anywhere: it is all that are pending and entered
//! at or before it. So what a window leaves over carries over by itself, and a seal costs the same
//! however many are left. This needs windows to be decided in order: only the oldest unsealed one
//! can be taken.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    claim_batch::KeptBatch, due::DueKey, mutation::Mutation, region::Region, report::ReportBody,
    request::IntakePlace, rules::MAX_UNSEALED_WINDOWS,
};
use crate::domain::{
    ConfigVersion, DurationMs, Epoch, Generation, Nonce, StoreTime, Take, UnixMs, WindowSeq,
};

/// Who may claim for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The life of the data in which it was taken.
    pub generation: Generation,
    /// Who took it.
    pub holder: Holder,
}

/// The two kinds of owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// The region's leader.
    Leader {
        /// Its leadership.
        epoch: Epoch,
        /// Its own number.
        nonce: Nonce,
    },
    /// A node that took an overdue window over.
    Fallback {
        /// The number of the take-over.
        take: Take,
        /// Its own number.
        nonce: Nonce,
    },
}

/// Who wants a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taker {
    /// The leader, after the close.
    Leader {
        /// Its leadership.
        epoch: Epoch,
        /// Its own number.
        nonce: Nonce,
    },
    /// Any node, after close + budget + grace.
    Fallback {
        /// Drawn once a take; a repeat carries the same.
        nonce: Nonce,
    },
}

/// How far an unsealed window has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowPhase {
    /// Nobody decides it yet.
    Open,
    /// Its owner decides it.
    Taken {
        /// Who.
        owner: Owner,
        /// Since when.
        at_ms: UnixMs,
    },
}

/// A window that is not sealed. What was promised when it opened stays, whatever is tuned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Its number.
    pub seq: WindowSeq,
    /// When it opened.
    pub opened_at_ms: UnixMs,
    /// When it closes; earlier than first promised when many requests arrive.
    pub closes_at_ms: UnixMs,
    /// The grid's step when it opened.
    pub window_ms: DurationMs,
    /// Time for its decision.
    pub budget_ms: DurationMs,
    /// Time beyond that before it is taken over.
    pub grace_ms: DurationMs,
    /// The configuration when it opened.
    pub config_version: ConfigVersion,
    /// Requests that arrived since it opened.
    pub arrivals: u32,
    /// How far it has come.
    pub phase: WindowPhase,
    /// Pairs claimed for it so far, whoever owned it.
    pub claimed: u32,
    /// Number over every claim batch of its present owner.
    pub next_batch: u32,
    /// The answers to its present owner's claim batches; the region's own, not told to readers.
    #[serde(skip)]
    pub(crate) batches: BTreeMap<u32, KeptBatch>,
}

impl WindowRecord {
    /// As readers see it.
    pub(crate) fn told(&self) -> Self {
        Self {
            batches: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// From when on any node may take it over.
    pub fn overdue_at(&self) -> UnixMs {
        let deadline = self.closes_at_ms + self.budget_ms + self.grace_ms;
        match self.phase {
            WindowPhase::Open => deadline,
            WindowPhase::Taken { at_ms, .. } => deadline.max(at_ms + self.grace_ms),
        }
    }
}

/// Takes a window: one compare-and-set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TakeWindow {
    /// Which.
    pub window_seq: WindowSeq,
    /// Who wants it.
    pub taker: Taker,
}

/// A window was taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TakenWindow {
    /// What claims and seal must carry.
    pub owner: Owner,
    /// The window.
    pub window: WindowRecord,
}

/// Why a window step is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum WindowRefusal {
    /// The window has another owner, or is sealed, or never was: stop working on it.
    #[error("the window is lost")]
    WindowLost,
    /// It still collects.
    #[error("the window closes at {closes_at_ms}")]
    NotClosed {
        /// When it closes at the latest.
        closes_at_ms: UnixMs,
    },
    /// Its owner still has time.
    #[error("the window is not overdue before {overdue_at_ms}")]
    NotOverdue {
        /// When it may be taken over.
        overdue_at_ms: UnixMs,
    },
    /// An earlier window must be sealed first.
    #[error("window {oldest} must be sealed first")]
    EarlierUnsealed {
        /// The oldest unsealed one.
        oldest: WindowSeq,
    },
    /// The taker does not lead the region.
    #[error("the taker does not lead the region")]
    NotLeader,
    /// The store lost data; no windows until then.
    #[error("the region is quarantined until {until_ms}")]
    Quarantined {
        /// When windows begin again.
        until_ms: UnixMs,
    },
    /// More pairs or batches than one step or window may have.
    #[error("a batch has at most 250 pairs, a window at most 64 batches")]
    TooLarge,
    /// The number of the batch was used for other pairs.
    #[error("the batch number was used for other pairs")]
    OtherPairs,
}

impl Region {
    /// The window that collects at `now`, opened if there is none.
    pub(crate) fn collecting(&mut self, now: StoreTime) -> WindowSeq {
        let ms = now.ms();
        self.mend_closes(now);
        if let Some((seq, last)) = self.windows.last_key_value()
            && ms < last.closes_at_ms
        {
            return *seq;
        }
        let seq = self.last_window.next();
        if self.quarantine(now).is_some() || self.windows.len() >= MAX_UNSEALED_WINDOWS {
            // no windows in a quarantine, nor more than may be: the next one decides what waits
            return seq;
        }
        let anchor = *self.anchor.get_or_insert(ms);
        let closes_at_ms = next_close(anchor, self.rules.window_ms, ms);
        self.last_window = seq;
        self.due.set(DueKey::WindowClose(seq), closes_at_ms);
        self.windows.insert(
            seq,
            WindowRecord {
                seq,
                opened_at_ms: ms,
                closes_at_ms,
                window_ms: self.rules.window_ms,
                budget_ms: self.rules.budget_ms,
                grace_ms: self.rules.grace_ms,
                config_version: self.config_version,
                arrivals: 0,
                phase: WindowPhase::Open,
                claimed: 0,
                next_batch: 0,
                batches: BTreeMap::new(),
            },
        );
        seq
    }

    /// What a clock promised that was set back since would come late by as much: it is promised
    /// anew. No close is further away than a step of its grid, and nothing was taken in the future.
    pub(crate) fn mend_closes(&mut self, now: StoreTime) {
        let ms = now.ms();
        let Some(anchor) = self.anchor else {
            return;
        };
        for (&seq, window) in &mut self.windows {
            match &mut window.phase {
                WindowPhase::Open if window.closes_at_ms - ms > window.window_ms => {
                    window.closes_at_ms = next_close(anchor, window.window_ms, ms);
                    self.due.set(DueKey::WindowClose(seq), window.closes_at_ms);
                }
                WindowPhase::Taken { at_ms, .. } if *at_ms > ms => {
                    *at_ms = ms;
                    window.closes_at_ms = window.closes_at_ms.min(ms);
                }
                _ => {}
            }
        }
    }

    /// A request arrives: it belongs to the collecting window, which may close early for it.
    pub(crate) fn arrive(&mut self, now: StoreTime) -> IntakePlace {
        let closed = |window: &WindowRecord| window.closes_at_ms <= now.ms();
        if self.windows.len() >= MAX_UNSEALED_WINDOWS && self.windows.values().all(closed) {
            self.seal_by_nobody(now);
        }
        let window_seq = self.collecting(now);
        let (max_requests, min_window_ms) = (self.rules.max_requests, self.rules.min_window_ms);
        let Some(window) = self.windows.get_mut(&window_seq) else {
            // in a quarantine; the first window after it
            let closes_at_ms = self.quarantine(now).unwrap_or(now.ms()) + self.rules.window_ms;
            return IntakePlace {
                window_seq,
                closes_at_ms,
            };
        };
        window.arrivals = window.arrivals.saturating_add(1);
        if window.arrivals >= max_requests {
            let early = now.ms().max(window.opened_at_ms + min_window_ms);
            if early < window.closes_at_ms {
                window.closes_at_ms = early;
                self.due.set(DueKey::WindowClose(window_seq), early);
            }
        }
        IntakePlace {
            window_seq,
            closes_at_ms: window.closes_at_ms,
        }
    }

    /// Requests pending without a window to decide them get one: carry-over, or a quarantine ended.
    pub(crate) fn reopen(&mut self, now: StoreTime) {
        if !self.pending.is_empty() && self.windows.is_empty() {
            self.collecting(now);
        }
    }

    /// Takes a window: the leader after its close, any node once it is overdue.
    pub(crate) fn take_window(
        &mut self,
        take: &TakeWindow,
        now: StoreTime,
    ) -> Result<TakenWindow, WindowRefusal> {
        if let Some(until_ms) = self.quarantine(now)
            && !self.has(Mutation::QuarantineIgnored)
        {
            return Err(WindowRefusal::Quarantined { until_ms });
        }
        self.mend_closes(now);
        let Some(window) = self.windows.get(&take.window_seq) else {
            return Err(WindowRefusal::WindowLost);
        };
        if let Some((&oldest, _)) = self.windows.first_key_value()
            && oldest < take.window_seq
        {
            return Err(WindowRefusal::EarlierUnsealed { oldest });
        }
        if now.ms() < window.closes_at_ms {
            return Err(WindowRefusal::NotClosed {
                closes_at_ms: window.closes_at_ms,
            });
        }
        let current = match window.phase {
            WindowPhase::Taken { owner, .. } if self.owner_lives(owner) => Some(owner),
            _ => None,
        };
        let holder = match take.taker {
            Taker::Leader { epoch, nonce } => {
                if !self.leads(epoch, nonce, now) {
                    return Err(WindowRefusal::NotLeader);
                }
                let holder = Holder::Leader { epoch, nonce };
                if let WindowPhase::Taken { owner, .. } = window.phase
                    && owner.generation == self.generation
                    && owner.holder != holder
                {
                    return Err(WindowRefusal::WindowLost);
                }
                holder
            }
            Taker::Fallback { nonce } => match current.map(|owner| owner.holder) {
                Some(holder @ Holder::Fallback { nonce: mine, .. }) if mine == nonce => holder,
                _ => {
                    let overdue_at_ms = window.overdue_at();
                    if now.ms() < overdue_at_ms && !self.has(Mutation::TakenTooEarly) {
                        return Err(WindowRefusal::NotOverdue { overdue_at_ms });
                    }
                    self.takes = self.takes.next();
                    Holder::Fallback {
                        take: self.takes,
                        nonce,
                    }
                }
            },
        };
        let owner = Owner {
            generation: self.generation,
            holder,
        };
        let seq = take.window_seq;
        if let Some(window) = self.windows.get_mut(&seq)
            && current != Some(owner)
        {
            window.phase = WindowPhase::Taken {
                owner,
                at_ms: now.ms(),
            };
            window.batches.clear();
            window.next_batch = 0;
        }
        self.sweep_due(now);
        let window = self
            .windows
            .get(&seq)
            .map(WindowRecord::told)
            .ok_or(WindowRefusal::WindowLost)?;
        Ok(TakenWindow { owner, window })
    }

    /// Whether `owner` may act for a window: its generation is the present one, and a leader has
    /// not been followed by another.
    fn owner_lives(&self, owner: Owner) -> bool {
        let generation =
            owner.generation == self.generation || self.has(Mutation::LateGenerationAccepted);
        let leadership = match owner.holder {
            Holder::Leader { epoch, .. } => {
                epoch == self.leadership.epoch || self.has(Mutation::StaleOwnerClaims)
            }
            Holder::Fallback { .. } => true,
        };
        generation && leadership
    }

    /// The window, if `owner` is its current owner (INV-4).
    pub(crate) fn owned(
        &self,
        seq: WindowSeq,
        owner: Owner,
        now: StoreTime,
    ) -> Result<&WindowRecord, WindowRefusal> {
        if self.quarantine(now).is_some()
            && !self.has(Mutation::QuarantineIgnored)
            && !self.has(Mutation::LateGenerationAccepted)
        {
            return Err(WindowRefusal::WindowLost);
        }
        let window = self.windows.get(&seq).ok_or(WindowRefusal::WindowLost)?;
        let stale_passes = self.has(Mutation::StaleOwnerClaims);
        match window.phase {
            WindowPhase::Taken { owner: current, .. }
                if (current == owner || stale_passes) && self.owner_lives(owner) =>
            {
                Ok(window)
            }
            _ => Err(WindowRefusal::WindowLost),
        }
    }

    /// More windows wait than may: the oldest ends undecided, and what it held carries over.
    fn seal_by_nobody(&mut self, now: StoreTime) {
        if let Some((&seq, _)) = self.windows.first_key_value() {
            self.write_seal(seq, None, ReportBody::undecided(), None, now);
        }
    }
}

/// The first point of the grid after `now`.
pub fn next_close(anchor: UnixMs, window: DurationMs, now: UnixMs) -> UnixMs {
    let step = window.get().max(1);
    let passed = (now - anchor).get().div_euclid(step);
    anchor + DurationMs::new((passed + 1).saturating_mul(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_lie_on_the_grid_and_strictly_after_now() {
        let at = |anchor, window, now| {
            next_close(
                UnixMs::new(anchor),
                DurationMs::new(window),
                UnixMs::new(now),
            )
            .get()
        };
        assert_eq!(at(1_000, 3_000, 1_000), 4_000);
        assert_eq!(at(1_000, 3_000, 3_999), 4_000);
        assert_eq!(at(1_000, 3_000, 4_000), 7_000);
        assert_eq!(at(4_000, 5_000, 2_000), 4_000);
        assert_eq!(at(4_000, 5_000, 4_000), 9_000);
    }
}
