//! What a run has met. A run that met no stale write, no loss, no refusal proves nothing.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::held::{Held, Moment, Taken};
use crate::protocol::{
    Answer, ClaimRefusal, EventType, Holder, LeadershipRefusal, OwnBegun, OwnRefusal, PairOutcome,
    Reason, WindowRefusal,
};

/// Something worth meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// A claim was made.
    Claimed,
    /// A pair was lost to somebody faster.
    PairLost,
    /// A trip began.
    Confirmed,
    /// A driver was given back.
    Released,
    /// A trip ended.
    Completed,
    /// A request was cancelled.
    Cancelled,
    /// A lease ended by itself.
    LeaseExpired,
    /// A request waited too long.
    Expired,
    /// A call came after the lease, the cancel, or for another fence.
    CallRefused,
    /// A batch of an owner that had been replaced was refused.
    StaleBatch,
    /// A seal of one was.
    StaleSeal,
    /// A take by who does not lead (any more) was refused.
    StaleTake,
    /// A window was taken over.
    TakenOver,
    /// A window was sealed.
    Sealed,
    /// Both nodes believed to lead.
    TwoLead,
    /// A node asked while another led.
    ElectionLost,
    /// A leader found that it no longer is one.
    LeadershipLost,
    /// A repeat got the first answer.
    Repeated,
    /// The same id with another body was refused.
    OtherBody,
    /// A step found the data in another life.
    GenerationFound,
    /// A step found no data at all.
    DataMissing,
    /// A quarantine refused something.
    Quarantined,
    /// A trip was restored.
    Restored,
    /// An own window's answer was asked for again.
    OwnAnswered,
}

impl Sight {
    /// Every one of them, in order.
    const ALL: [Self; 24] = [
        Self::Claimed,
        Self::PairLost,
        Self::Confirmed,
        Self::Released,
        Self::Completed,
        Self::Cancelled,
        Self::LeaseExpired,
        Self::Expired,
        Self::CallRefused,
        Self::StaleBatch,
        Self::StaleSeal,
        Self::StaleTake,
        Self::TakenOver,
        Self::Sealed,
        Self::TwoLead,
        Self::ElectionLost,
        Self::LeadershipLost,
        Self::Repeated,
        Self::OtherBody,
        Self::GenerationFound,
        Self::DataMissing,
        Self::Quarantined,
        Self::Restored,
        Self::OwnAnswered,
    ];
}

/// How often each was met: in how many different steps, or for what the model itself tells, at all.
#[derive(Debug, Default)]
pub(super) struct Seen([AtomicU64; Sight::ALL.len()]);

impl Seen {
    /// Something was met.
    pub(super) fn sight(&self, sight: Sight) {
        self.0[sight as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was met.
    pub(super) fn count(&self, sight: Sight) -> u64 {
        self.0[sight as usize].load(Ordering::Relaxed)
    }

    /// A step that is executed for the first time.
    pub(super) fn step(&self, before: &Held, taken: &Taken, moment: Moment) {
        if before.region.is_none() {
            self.sight(Sight::DataMissing);
        }
        let Ok(answer) = &taken.answer else {
            self.sight(Sight::GenerationFound);
            return;
        };
        for event in &taken.events {
            let sight = match event.kind {
                EventType::Assigned => Sight::Claimed,
                EventType::Confirmed if event.reason == Some(Reason::Reconciled) => Sight::Restored,
                EventType::Confirmed => Sight::Confirmed,
                EventType::Released => Sight::Released,
                EventType::Completed => Sight::Completed,
                EventType::Cancelled => Sight::Cancelled,
                EventType::LeaseExpired => Sight::LeaseExpired,
                EventType::Expired => Sight::Expired,
                _ => continue,
            };
            self.sight(sight);
        }
        let quarantined = before
            .region
            .as_ref()
            .is_some_and(|region| region.quarantine(moment.now()).is_some());
        if let Some(sight) = of_answer(answer, quarantined) {
            self.sight(sight);
        }
    }
}

/// What an answer shows, when it is worth meeting.
fn of_answer(answer: &Answer, quarantined: bool) -> Option<Sight> {
    let sight = match answer {
        Answer::ClaimBatch(Ok(batch)) | Answer::ClaimOwn(Ok(batch)) => {
            let lost = |outcome: &PairOutcome| matches!(outcome, PairOutcome::Lost(_));
            return batch.outcomes.iter().any(lost).then_some(Sight::PairLost);
        }
        Answer::ClaimBatch(Err(WindowRefusal::WindowLost)) => Sight::StaleBatch,
        Answer::Seal(Err(WindowRefusal::WindowLost)) => Sight::StaleSeal,
        Answer::Seal(Ok(_)) => Sight::Sealed,
        Answer::TakeWindow(Err(WindowRefusal::WindowLost | WindowRefusal::NotLeader)) => {
            Sight::StaleTake
        }
        Answer::TakeWindow(Ok(taken)) => match taken.owner.holder {
            Holder::Fallback { .. } => Sight::TakenOver,
            Holder::Leader { .. } => return None,
        },
        Answer::Acquire(Err(LeadershipRefusal::Held { .. })) => Sight::ElectionLost,
        Answer::Renew(Err(LeadershipRefusal::Lost))
        | Answer::Resign(Err(LeadershipRefusal::Lost)) => Sight::LeadershipLost,
        Answer::Intake(Ok(taken)) if !taken.rejected.is_empty() => Sight::OtherBody,
        Answer::BeginOwn(Ok(OwnBegun::Done { .. })) => Sight::OwnAnswered,
        Answer::BeginOwn(Err(OwnRefusal::WindowConflict)) => Sight::OtherBody,
        Answer::Confirm(Err(refusal))
        | Answer::Release(Err(refusal))
        | Answer::Complete(Err(refusal)) => match refusal {
            ClaimRefusal::NotHeld => Sight::Quarantined,
            _ => Sight::CallRefused,
        },
        Answer::Intake(Err(_)) | Answer::TakeWindow(Err(_)) | Answer::BeginOwn(Err(_))
            if quarantined =>
        {
            Sight::Quarantined
        }
        _ => return None,
    };
    Some(sight)
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = Sight::ALL.iter().filter(|sight| self.count(**sight) > 0);
        for (n, sight) in met.enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{sight:?} {}", self.count(*sight))?;
        }
        Ok(())
    }
}
