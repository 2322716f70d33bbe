//! Answers as the scripts give them.

use std::sync::Arc;

use serde::Deserialize;

use super::{Told, WireError, commands::invalid, told};
use crate::{
    domain::{ConfigVersion, DurationMs, Epoch, Generation, UnixMs, WindowSeq},
    protocol::{
        Answer, BatchAnswer, Command, ConfigureRefusal, Configured, EntryCode, LeadershipRefusal,
        OwnRefusal, Ping, PingAnswer, Rejected, RemoveDriverRefusal, ReportBody, WindowRefusal,
        WindowReport,
    },
};

/// Reads the reply of the script of `command`.
pub(in crate::store::redis) fn decode(
    command: &Command,
    reply: &[u8],
) -> Result<Told<Answer>, WireError> {
    match command {
        Command::Ping(pings) => told(reply, |a: PingFates| {
            Ok(Answer::Ping(a.answer(&pings.pings)))
        }),
        Command::RemoveDriver(_) => told(reply, |a: Result<bool, RemoveDriverRefusal>| {
            Ok(Answer::RemoveDriver(a.map(|_| ())))
        }),
        Command::Intake(_) => told(reply, |a| Ok(Answer::Intake(a))),
        Command::Cancel(_) => told(reply, |a| Ok(Answer::Cancel(a))),
        Command::Confirm(_) => told(reply, |a| Ok(Answer::Confirm(a))),
        Command::Release(_) => told(reply, |a| Ok(Answer::Release(a))),
        Command::Complete(_) => told(reply, |a| Ok(Answer::Complete(a))),
        Command::Extend(_) => told(reply, |a| Ok(Answer::Extend(a))),
        Command::TakeWindow(_) => told(reply, |a| Ok(Answer::TakeWindow(a))),
        Command::ClaimBatch(_) => told(reply, |a: Result<BatchAnswer, _>| {
            Ok(Answer::ClaimBatch(a.map(Arc::new)))
        }),
        Command::Seal(_) => told(reply, |a: Result<KeptReport, WindowRefusal>| {
            Ok(Answer::Seal(match a {
                Ok(kept) => Ok(Arc::new(kept.told()?)),
                Err(refusal) => Err(refusal),
            }))
        }),
        Command::BeginOwn(_) => told(reply, |a| Ok(Answer::BeginOwn(a))),
        Command::ClaimOwn(_) => told(reply, |a: Result<BatchAnswer, OwnRefusal>| {
            Ok(Answer::ClaimOwn(a.map(Arc::new)))
        }),
        Command::FinishOwn(_) => told(reply, |a| Ok(Answer::FinishOwn(a))),
        Command::Acquire(_) => told(reply, |a| Ok(Answer::Acquire(a))),
        Command::Renew(_) => told(reply, |a| Ok(Answer::Renew(a))),
        Command::Resign(_) => told(reply, |a: Result<bool, LeadershipRefusal>| {
            Ok(Answer::Resign(a.map(|_| ())))
        }),
        Command::Configure(configure) => told(reply, |a: Result<Configured, NotConfigured>| {
            Ok(Answer::Configure(a.map_err(|refusal| match refusal {
                NotConfigured::VersionMismatch { present } => {
                    ConfigureRefusal::VersionMismatch { present }
                }
                NotConfigured::Invalid => invalid(configure).unwrap_or(ConfigureRefusal::TooLarge),
            })))
        }),
        Command::Reconcile(_) => told(reply, |a| Ok(Answer::Reconcile(a))),
        Command::Sweep(_) => told(reply, |a| Ok(Answer::Sweep(a))),
    }
}

/// Reads the reply of the script for pings, one fate a ping.
pub(in crate::store::redis) fn decode_fates(
    _: &Command,
    reply: &[u8],
) -> Result<Told<PingFates>, WireError> {
    told(reply, Ok)
}

/// What became of each ping, a letter a ping.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(in crate::store::redis) struct PingFates(String);

impl PingFates {
    /// Those of the first pings; the rest stays.
    pub(in crate::store::redis) fn take(&mut self, pings: usize) -> Self {
        let rest = self.0.split_off(pings.min(self.0.len()));
        Self(std::mem::replace(&mut self.0, rest))
    }

    /// The answer to who sent these pings.
    pub(in crate::store::redis) fn answer(&self, pings: &[Ping]) -> PingAnswer {
        let mut answer = PingAnswer::default();
        for (index, (fate, ping)) in self.0.chars().zip(pings).enumerate() {
            let code = match fate {
                'm' => {
                    answer.moved += 1;
                    answer.accepted += 1;
                    continue;
                }
                'a' => {
                    answer.accepted += 1;
                    continue;
                }
                's' => {
                    answer.stale += 1;
                    continue;
                }
                'f' => EntryCode::AtMsInFuture,
                _ => EntryCode::RegionFull,
            };
            let id = ping.id.clone();
            answer.rejected.push(Rejected { index, id, code });
        }
        answer
    }
}

/// Why a script did not set a configuration; what is invalid is known to the node.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum NotConfigured {
    VersionMismatch { present: ConfigVersion },
    Invalid,
}

/// A report as the scripts keep it.
#[derive(Deserialize)]
pub(in crate::store::redis) struct KeptReport {
    window_seq: WindowSeq,
    window_ms: DurationMs,
    config_version: ConfigVersion,
    generation: Generation,
    epoch: Epoch,
    opened_at_ms: UnixMs,
    closed_at_ms: UnixMs,
    sealed_at_ms: UnixMs,
    assigned: u32,
    /// What the decider told, as JSON; absent when nobody decided the window.
    body: Option<String>,
}

impl KeptReport {
    /// The report as readers know it.
    pub(in crate::store::redis) fn told(self) -> Result<WindowReport, WireError> {
        let body = match &self.body {
            Some(body) => serde_json::from_str(body)?,
            None => ReportBody::undecided(),
        };
        Ok(WindowReport {
            window_seq: self.window_seq,
            window_ms: self.window_ms,
            config_version: self.config_version,
            generation: self.generation,
            epoch: self.epoch,
            opened_at_ms: self.opened_at_ms,
            closed_at_ms: self.closed_at_ms,
            sealed_at_ms: self.sealed_at_ms,
            assigned: self.assigned,
            body,
        })
    }
}
