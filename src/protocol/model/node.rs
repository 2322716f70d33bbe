//! A node: what it believes, from the answers that reached it. It may be wrong.

use crate::{
    domain::{Epoch, Generation, Nonce, WindowSeq},
    protocol::{
        Answer, Command, GenerationChanged, LeadershipRefusal, OwnBegun, Owner, WindowRefusal,
    },
};

use super::held::Message;

/// A node's beliefs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// The generation that it passes along.
    pub(super) known: Generation,
    /// The leadership that it believes to hold.
    pub(super) leads: Option<(Epoch, Nonce)>,
    /// The window that it believes to own.
    pub(super) owns: Option<(WindowSeq, Owner)>,
    /// The number by which it works on the caller's own window.
    pub(super) runs: Option<Nonce>,
    /// Numbers that it drew to lead by.
    pub(super) drawn: u8,
    /// Numbers that it drew to work on the own window by.
    pub(super) begun: u8,
}

/// What an answer tells the node that hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Heard {
    /// Nothing about itself.
    Nothing,
    /// The store's data began another life.
    Generation(Generation),
    /// It leads.
    Leads(Epoch, Nonce),
    /// This leadership is over.
    LedOnce(Epoch, Nonce),
    /// It owns a window.
    Owns(WindowSeq, Owner),
    /// It is done with the window, or lost it.
    OwnedOnce(WindowSeq, Owner),
    /// It works on the own window.
    Runs(Nonce),
    /// It is done with it, or lost it.
    RanOnce(Nonce),
}

impl Heard {
    /// What the answer to a message tells.
    pub(super) fn of(message: &Message, answer: &Result<Answer, GenerationChanged>) -> Self {
        let answer = match answer {
            Ok(answer) => answer,
            Err(changed) => return Self::Generation(changed.generation),
        };
        match (&message.command, answer) {
            (Command::Acquire(ask), Answer::Acquire(Ok(leads))) => {
                Self::Leads(leads.epoch, ask.nonce)
            }
            (Command::Renew(renewal), Answer::Renew(Err(LeadershipRefusal::Lost))) => {
                Self::LedOnce(renewal.epoch, renewal.nonce)
            }
            (Command::TakeWindow(take), Answer::TakeWindow(Ok(taken))) => {
                Self::Owns(take.window_seq, taken.owner)
            }
            (Command::TakeWindow(take), Answer::TakeWindow(Err(WindowRefusal::NotLeader))) => {
                match take.taker {
                    crate::protocol::Taker::Leader { epoch, nonce } => Self::LedOnce(epoch, nonce),
                    crate::protocol::Taker::Fallback { .. } => Self::Nothing,
                }
            }
            (Command::ClaimBatch(batch), Answer::ClaimBatch(Err(WindowRefusal::WindowLost))) => {
                Self::OwnedOnce(batch.window_seq, batch.owner)
            }
            (Command::Seal(seal), Answer::Seal(Ok(_) | Err(WindowRefusal::WindowLost))) => {
                Self::OwnedOnce(seal.window_seq, seal.owner)
            }
            (Command::BeginOwn(begin), Answer::BeginOwn(Ok(OwnBegun::Run { .. }))) => {
                Self::Runs(begin.runner)
            }
            (Command::ClaimOwn(batch), Answer::ClaimOwn(Err(_))) => Self::RanOnce(batch.runner),
            (Command::FinishOwn(finish), Answer::FinishOwn(_)) => Self::RanOnce(finish.runner),
            _ => Self::Nothing,
        }
    }
}

impl Node {
    /// A node that knows the region and believes nothing of itself.
    pub(super) fn new(known: Generation) -> Self {
        Self {
            known,
            leads: None,
            owns: None,
            runs: None,
            drawn: 0,
            begun: 0,
        }
    }

    /// The node hears an answer.
    pub(super) fn hear(&self, heard: Heard) -> Self {
        let mut node = self.clone();
        match heard {
            Heard::Nothing => {}
            // what it believed is over, but it need not notice: it may go on under the new one
            Heard::Generation(generation) => node.known = node.known.max(generation),
            Heard::Leads(epoch, nonce) => node.leads = Some((epoch, nonce)),
            Heard::LedOnce(epoch, nonce) => {
                node.leads = node.leads.filter(|held| *held != (epoch, nonce));
            }
            Heard::Owns(seq, owner) => node.owns = Some((seq, owner)),
            Heard::OwnedOnce(seq, owner) => {
                node.owns = node.owns.filter(|held| *held != (seq, owner));
            }
            Heard::Runs(runner) => node.runs = Some(runner),
            Heard::RanOnce(runner) => node.runs = node.runs.filter(|held| *held != runner),
        }
        node
    }

    /// What sending a message does to the sender: a number is drawn, a leadership given up.
    pub(super) fn send(&self, command: &Command) -> Self {
        let mut node = self.clone();
        match command {
            Command::Acquire(_) => node.drawn += 1,
            Command::BeginOwn(_) => node.begun += 1,
            Command::Resign(_) => {
                node.leads = None;
                node.owns = None;
            }
            _ => {}
        }
        node
    }
}
