//! INV-4 as checks of one step: windows and leaderships change hands by their rules alone.

use super::step::Look;
use crate::{
    domain::{Epoch, Nonce, WindowSeq},
    protocol::{
        Answer, Command, Holder, Owner, TakeWindow, Taker, WindowPhase, WindowRecord,
        invariants::{Breach, Invariant, hold},
    },
};

impl Look<'_> {
    /// INV-4: whether `owner` owns the window, as the record before the step says it.
    pub(super) fn owns(&self, seq: WindowSeq, owner: Owner) -> bool {
        let window = self.before.windows.get(&seq);
        let recorded = window.is_some_and(
            |window| matches!(window.phase, WindowPhase::Taken { owner: held, .. } if held == owner),
        );
        let leads_on = match owner.holder {
            Holder::Leader { epoch, .. } => epoch == self.before.leadership.epoch,
            Holder::Fallback { .. } => true,
        };
        recorded
            && leads_on
            && owner.generation == self.before.generation()
            && self.before.quarantine(self.now).is_none()
    }

    /// INV-4: at most the one window of the command is sealed, and sealed ones stay as they are.
    pub(super) fn check_windows(&self) -> Result<(), Breach> {
        let (before, after) = (self.before.reports(), self.after.reports());
        let sealed = after.len() - before.len();
        let by = matches!(self.command, Command::Seal(_));
        hold!(Inv4, sealed == 0 || (sealed == 1 && by), "{sealed} seals");
        for old in before.after(WindowSeq::default()) {
            let same = after.get(old.report.window_seq) == Some(old);
            hold!(Inv4, same, "window {} changed", old.report.window_seq);
        }
        for (seq, window) in &self.after.windows {
            let owner = |w: &WindowRecord| match w.phase {
                WindowPhase::Taken { owner, .. } => Some(owner),
                WindowPhase::Open => None,
            };
            let was = self.before.windows.get(seq).and_then(owner);
            let taken =
                matches!(self.command, Command::TakeWindow(take) if take.window_seq == *seq);
            hold!(
                Inv4,
                taken || owner(window) == was,
                "window {seq} changed hands by {:?}",
                self.command
            );
        }
        Ok(())
    }

    pub(super) fn check_take(&self, take: &TakeWindow, owner: Owner) -> Result<(), Breach> {
        let window = self.before.windows.get(&take.window_seq);
        let Some(window) = window else {
            hold!(Inv4, false, "window {} is not open", take.window_seq);
            return Ok(());
        };
        let closed = window.closes_at_ms <= self.now.ms();
        hold!(Inv4, closed, "window {} still collects", window.seq);
        let held = match window.phase {
            WindowPhase::Taken { owner, .. } => Some(owner),
            WindowPhase::Open => None,
        };
        let allowed = match take.taker {
            Taker::Leader { epoch, nonce } => {
                // a window that another took in this generation is its own until it is overdue
                let rival = held.is_some_and(|held| {
                    held.generation == self.before.generation() && held != owner
                });
                self.leads(epoch, nonce) && !rival
            }
            Taker::Fallback { .. } => held == Some(owner) || window.overdue_at() <= self.now.ms(),
        };
        hold!(Inv4, allowed, "{take:?} was granted over {held:?}");
        Ok(())
    }

    fn leads(&self, epoch: Epoch, nonce: Nonce) -> bool {
        let leadership = &self.before.leadership;
        leadership.epoch == epoch
            && leadership
                .leader
                .as_ref()
                .is_some_and(|leader| leader.nonce == nonce && self.now.ms() < leader.until_ms)
    }

    /// INV-4: one leader at a time, each in an epoch above all before.
    pub(super) fn check_leadership(&self, answer: &Answer) -> Result<(), Breach> {
        match (self.command, answer) {
            (Command::Acquire(ask), Answer::Acquire(Ok(leads))) => {
                let leader = self.before.leadership.leader.as_ref();
                let rival = leader.is_some_and(|leader| {
                    leader.nonce != ask.nonce && self.now.ms() < leader.until_ms
                });
                hold!(Inv4, !rival, "a second leader in epoch {}", leads.epoch);
                let new = !self.leads(leads.epoch, ask.nonce);
                let risen = leads.epoch > self.given.epoch;
                hold!(Inv4, risen || !new, "epoch {} came again", leads.epoch);
                Ok(())
            }
            (Command::Renew(renewal), Answer::Renew(Ok(_))) => {
                let leads = self.leads(renewal.epoch, renewal.nonce);
                hold!(Inv4, leads, "a leadership was renewed that was not held");
                Ok(())
            }
            (Command::Resign(_), _) => Ok(()),
            _ => {
                let same = self.before.leadership == self.after.leadership;
                let taken = matches!(self.command, Command::Acquire(_) | Command::Renew(_));
                hold!(Inv4, same || taken, "led otherwise by {:?}", self.command);
                Ok(())
            }
        }
    }
}
