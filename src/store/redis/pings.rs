//! Pings on their way: those that arrive while a script is under way go together with the next.
//!
//! So a region under load sends few full scripts, and an idle one sends each ping at once.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Shared, cell::Cell, wire};
use crate::{
    protocol::{
        Answer, Command, EntryCode, Ping, PingAnswer, Pings, Rejected, rules::MAX_PINGS_A_STEP,
    },
    store::StoreError,
};

/// Most pings of one script: 500 hold the server for about 2 ms.
const A_SCRIPT: usize = 500;

/// Most pings that wait in a region.
const MAX_WAITING: usize = 50_000;

/// A caller's pings, at most [`A_SCRIPT`] of them.
struct Waiting {
    pings: Vec<Ping>,
    answered: oneshot::Sender<Result<PingAnswer, StoreError>>,
}

/// The pings of a region that wait for their script.
#[derive(Default)]
pub(super) struct PingLane(Mutex<Lane>);

#[derive(Default)]
struct Lane {
    waiting: Vec<Waiting>,
    pings: usize,
    running: bool,
}

/// Takes a caller's pings in.
pub(super) async fn take_in(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    mut sent: Pings,
) -> Result<Answer, StoreError> {
    let beyond = sent.pings.split_off(sent.pings.len().min(MAX_PINGS_A_STEP));
    let mut answers = Vec::new();
    let mut pings = sent.pings;
    loop {
        let rest = pings.split_off(pings.len().min(A_SCRIPT));
        answers.push(enqueue(shared, cell, std::mem::replace(&mut pings, rest))?);
        if pings.is_empty() {
            break;
        }
    }
    let mut sum = PingAnswer::default();
    for (place, answer) in answers.into_iter().enumerate() {
        let answer = answer
            .await
            .map_err(|_| StoreError::OutcomeUnknown("the call died".into()))??;
        sum.accepted += answer.accepted;
        sum.moved += answer.moved;
        sum.stale += answer.stale;
        let rejected = answer.rejected.into_iter();
        sum.rejected.extend(rejected.map(|entry| Rejected {
            index: entry.index + place * A_SCRIPT,
            ..entry
        }));
    }
    let too_many = beyond.into_iter().enumerate();
    sum.rejected.extend(too_many.map(|(index, ping)| Rejected {
        index: index + MAX_PINGS_A_STEP,
        id: ping.id,
        code: EntryCode::TooLarge,
    }));
    Ok(Answer::Ping(sum))
}

type Answered = oneshot::Receiver<Result<PingAnswer, StoreError>>;

fn enqueue(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    pings: Vec<Ping>,
) -> Result<Answered, StoreError> {
    let (answered, answer) = oneshot::channel();
    let mut lane = cell.pings.0.lock();
    if lane.pings + pings.len() > MAX_WAITING {
        return Err(StoreError::Unavailable("too many pings are waiting".into()));
    }
    lane.pings += pings.len();
    lane.waiting.push(Waiting { pings, answered });
    if !lane.running {
        lane.running = true;
        tokio::spawn(send_all(shared.clone(), cell.clone()));
    }
    Ok(answer)
}

/// Sends what waits, script after script, until nothing does.
async fn send_all(shared: Arc<Shared>, cell: Arc<Cell>) {
    loop {
        let batch = {
            let mut lane = cell.pings.0.lock();
            let mut fits = 0;
            let count = lane
                .waiting
                .iter()
                .take_while(|waiting| {
                    fits += waiting.pings.len();
                    fits <= A_SCRIPT
                })
                .count();
            let batch: Vec<Waiting> = lane.waiting.drain(..count).collect();
            let sent: usize = batch.iter().map(|waiting| waiting.pings.len()).sum();
            lane.pings -= sent;
            lane.running = !batch.is_empty();
            batch
        };
        if batch.is_empty() {
            return;
        }
        send(&shared, &cell, batch).await;
    }
}

async fn send(shared: &Arc<Shared>, cell: &Arc<Cell>, batch: Vec<Waiting>) {
    let pings = batch.iter().flat_map(|waiting| &waiting.pings);
    let command = Command::Ping(Pings {
        pings: pings.cloned().collect(),
    });
    let mut fates = shared.execute(cell, &command, wire::decode_fates).await;
    for Waiting { pings, answered } in batch {
        let answer = match &mut fates {
            Ok(fates) => Ok(fates.take(pings.len()).answer(&pings)),
            Err(error) => Err(error.clone()),
        };
        // a caller that stopped waiting does not want it
        let _ = answered.send(answer);
    }
}
