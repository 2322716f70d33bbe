//! Long calls in parts: a script holds the server, so each does a few milliseconds' work.
//!
//! Each part is repeated as the whole is: what was done before gets its first answer.

use std::{collections::BTreeSet, sync::Arc};

use super::{Shared, cell::Cell, wire};
use crate::{
    domain::RequestId,
    protocol::{
        Answer, Command, EntryCode, Intake, IntakeAnswer, IntakeRefusal, Reconcile,
        ReconcileAnswer, Rejected, RequestDraft,
        rules::{MAX_RECONCILED_A_STEP, MAX_REQUESTS_A_STEP},
    },
    store::StoreError,
};

/// Requests or trips of one script: about 2 ms.
const A_PART: usize = 100;

/// Takes requests in, in parts.
pub(super) async fn take_in(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    intake: Intake,
) -> Result<Answer, StoreError> {
    let mut whole = IntakeAnswer::default();
    let mut seen = BTreeSet::new();
    let mut part: Vec<(usize, RequestDraft)> = Vec::new();
    let mut parts = Vec::new();
    for (index, draft) in intake.requests.into_iter().enumerate() {
        let code = if index >= MAX_REQUESTS_A_STEP {
            EntryCode::TooLarge
        } else if seen.insert(draft.id.clone()) {
            part.push((index, draft));
            if part.len() == A_PART {
                parts.push(std::mem::take(&mut part));
            }
            continue;
        } else {
            EntryCode::DuplicateInBatch
        };
        let id = draft.id;
        whole.rejected.push(Rejected { index, id, code });
    }
    if !part.is_empty() || parts.is_empty() {
        parts.push(part);
    }
    for part in parts {
        let (places, requests): (Vec<usize>, Vec<RequestDraft>) = part.into_iter().unzip();
        let ids: Vec<RequestId> = requests.iter().map(|draft| draft.id.clone()).collect();
        match intake_part(shared, cell, requests).await? {
            Ok(answer) => {
                whole.requests.extend(answer.requests);
                let rejected = answer.rejected.into_iter();
                whole.rejected.extend(rejected.map(|entry| Rejected {
                    index: places.get(entry.index).copied().unwrap_or(entry.index),
                    ..entry
                }));
            }
            Err(refusal) if whole.requests.is_empty() => return Ok(Answer::Intake(Err(refusal))),
            // ops paused the region between two parts: what was taken is taken
            Err(_) => {
                let ids = places.into_iter().zip(ids);
                whole.rejected.extend(ids.map(|(index, id)| Rejected {
                    index,
                    id,
                    code: EntryCode::RegionFull,
                }));
            }
        }
    }
    whole.rejected.sort_by_key(|entry| entry.index);
    Ok(Answer::Intake(Ok(whole)))
}

async fn intake_part(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    requests: Vec<RequestDraft>,
) -> Result<Result<IntakeAnswer, IntakeRefusal>, StoreError> {
    let command = Command::Intake(Intake { requests });
    match shared.execute(cell, &command, wire::decode).await? {
        Answer::Intake(answer) => Ok(answer),
        _ => Err(StoreError::Broken(
            "an intake was answered otherwise".into(),
        )),
    }
}

/// Tells what is true, in parts; the last of them says that it is all.
pub(super) async fn tell(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    telling: Reconcile,
) -> Result<Answer, StoreError> {
    let most = telling.on_trip.len().max(telling.pending.len());
    if most <= A_PART || most > MAX_RECONCILED_A_STEP {
        let command = Command::Reconcile(telling);
        return shared.execute(cell, &command, wire::decode).await;
    }
    let mut whole = ReconcileAnswer::default();
    for from in (0..most).step_by(A_PART) {
        let part = Reconcile {
            generation: telling.generation,
            on_trip: part_of(&telling.on_trip, from),
            pending: part_of(&telling.pending, from),
            done: telling.done && from + A_PART >= most,
        };
        let answer = shared
            .execute(cell, &Command::Reconcile(part), wire::decode)
            .await?;
        let Answer::Reconcile(Ok(answer)) = answer else {
            return Ok(answer);
        };
        let moved = |entry: Rejected<RequestId>| Rejected {
            index: entry.index + from,
            ..entry
        };
        whole.restored.extend(answer.restored);
        whole.pending.extend(answer.pending);
        let (trips, requests) = (answer.rejected_trips, answer.rejected_requests);
        whole.rejected_trips.extend(trips.into_iter().map(moved));
        whole
            .rejected_requests
            .extend(requests.into_iter().map(moved));
    }
    Ok(Answer::Reconcile(Ok(whole)))
}

fn part_of<T: Clone>(all: &[T], from: usize) -> Vec<T> {
    all.iter().skip(from).take(A_PART).cloned().collect()
}
