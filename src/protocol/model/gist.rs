//! The gist of an answer: what a repeat of the same message must be answered again (INV-6, INV-10).

use std::sync::Arc;

use super::held::{Held, Message, Moment};
use crate::{
    domain::{Epoch, RequestId},
    protocol::{
        Answer, BatchAnswer, Cancelled, ClaimAnswer, Command, GenerationChanged, Holder,
        IntakePlace, OwnBegun, OwnPhase, Owner, Region, RequestRecord, Taker, WindowPhase,
        WindowReport,
    },
};

/// What may not differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Gist {
    Claim(ClaimAnswer),
    Cancelled(Cancelled),
    Taken(Vec<(RequestId, IntakePlace)>),
    Batch(Arc<BatchAnswer>),
    Owner(Owner),
    Report(Arc<WindowReport>),
    Leads(Epoch),
    Result(Arc<str>),
}

/// The gist of an answer that granted something.
pub(super) fn of(message: &Message, answer: &Result<Answer, GenerationChanged>) -> Option<Gist> {
    let gist = match answer.as_ref().ok()? {
        Answer::Confirm(Ok(answer))
        | Answer::Release(Ok(answer))
        | Answer::Complete(Ok(answer)) => Gist::Claim(answer.clone()),
        Answer::Cancel(Ok(cancelled)) => Gist::Cancelled(cancelled.clone()),
        Answer::Intake(Ok(taken)) if !taken.requests.is_empty() => {
            let places = taken.requests.iter();
            Gist::Taken(
                places
                    .map(|taken| (taken.id.clone(), taken.place))
                    .collect(),
            )
        }
        Answer::ClaimBatch(Ok(batch)) | Answer::ClaimOwn(Ok(batch)) => {
            Gist::Batch(Arc::clone(batch))
        }
        Answer::TakeWindow(Ok(taken)) => {
            // a second take-over is another one, even by the same node
            let leads = matches!(&message.command,
                Command::TakeWindow(take) if matches!(take.taker, Taker::Leader { .. }));
            return leads.then_some(Gist::Owner(taken.owner));
        }
        Answer::Seal(Ok(report)) => Gist::Report(Arc::clone(report)),
        Answer::Acquire(Ok(leads)) => Gist::Leads(leads.epoch),
        Answer::BeginOwn(Ok(OwnBegun::Done { result })) | Answer::FinishOwn(Ok(result)) => {
            Gist::Result(Arc::clone(result))
        }
        _ => return None,
    };
    Some(gist)
}

/// Whether the first answer to a message no longer binds, since the store lost data, or what it was
/// about has passed to somebody else.
pub(super) fn excused(
    before: &Held,
    message: &Message,
    answer: &Result<Answer, GenerationChanged>,
    moment: Moment,
) -> bool {
    let (Some(region), Ok(_)) = (&before.region, answer) else {
        return true;
    };
    let quarantined = region.quarantine(moment.now()).is_some();
    match &message.command {
        Command::Confirm(call) => !traced(region, &call.claim),
        Command::Release(call) => !traced(region, &call.claim),
        Command::Complete(call) => !traced(region, &call.claim),
        Command::Cancel(call) => !region.requests().contains_key(&call.request_id),
        Command::Intake(_) | Command::BeginOwn(_) | Command::FinishOwn(_) => quarantined,
        Command::ClaimBatch(batch) => !owned(region, batch.window_seq, batch.owner),
        Command::Seal(seal) => {
            let sealed = region.reports().get(seal.window_seq);
            sealed.is_none_or(|sealed| sealed.owner != Some(seal.owner))
                && !owned(region, seal.window_seq, seal.owner)
        }
        Command::TakeWindow(take) => match take.taker {
            Taker::Leader { epoch, nonce } => {
                !owned(
                    region,
                    take.window_seq,
                    Owner {
                        generation: region.generation(),
                        holder: Holder::Leader { epoch, nonce },
                    },
                ) || !region.leads(epoch, nonce, moment.now())
            }
            Taker::Fallback { .. } => true,
        },
        // a repeat that comes when the lease is over asks anew
        Command::Acquire(ask) => region
            .leader(moment.now())
            .is_none_or(|leader| leader.nonce != ask.nonce),
        Command::ClaimOwn(batch) => {
            let own = region.own_windows.get(&batch.window_id);
            own.is_none_or(|own| {
                !matches!(own.phase, OwnPhase::Running { runner, .. } if runner == batch.runner)
            })
        }
        _ => true,
    }
}

fn traced(region: &Region, key: &crate::protocol::ClaimKey) -> bool {
    let request = region.requests().get(&key.request_id);
    let trace = |record: &RequestRecord| record.trace(&key.driver_id, key.fence).is_some();
    request.is_some_and(trace)
}

fn owned(region: &Region, seq: crate::domain::WindowSeq, owner: Owner) -> bool {
    let window = region.windows.get(&seq);
    window.is_some_and(
        |window| matches!(window.phase, WindowPhase::Taken { owner: held, .. } if held == owner),
    ) && match owner.holder {
        Holder::Leader { epoch, .. } => epoch == region.leadership.epoch,
        Holder::Fallback { .. } => true,
    }
}
