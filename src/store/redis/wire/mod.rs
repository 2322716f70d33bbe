//! Commands as the scripts read them, and their answers as the scripts give them.
//!
//! Both are msgpack, which Lua carries without harm to 16-digit numbers (its JSON does not). Most
//! commands go as they are; those whose parts the scripts keep without looking into them, or that
//! come in great numbers, have a form of their own here.

mod answers;
mod commands;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    domain::{Generation, StoreTime},
    protocol::GenerationChanged,
    store::RegionSignal,
};

pub(super) use answers::{KeptReport, decode, decode_fates};
pub(super) use commands::encode;

/// What a script could not carry: a defect.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The command has no msgpack form.
    #[error("a command was not encoded: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The answer is not what the script promises.
    #[error("an answer was not understood: {0}")]
    Decode(#[from] rmp_serde::decode::Error),
    /// A kept document is not the JSON that was written.
    #[error("a kept document was not understood: {0}")]
    Json(#[from] serde_json::Error),
    /// Something that must be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// msgpack with the names of fields.
pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    Ok(rmp_serde::to_vec_named(value)?)
}

/// JSON, which scripts read where a value is kept as it was written.
pub(super) fn json(value: &impl Serialize) -> Result<String, WireError> {
    Ok(serde_json::to_string(value)?)
}

/// Reads msgpack.
pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    Ok(rmp_serde::from_slice(bytes)?)
}

/// What a script returns around its answer.
#[derive(Deserialize)]
struct Envelope<A> {
    t: StoreTime,
    g: Option<Generation>,
    s: Option<RegionSignal>,
    a: Option<A>,
    c: Option<GenerationChanged>,
    m: Option<Missing>,
    #[serde(default)]
    n: bool,
}

/// The store holds no such region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Missing {
    /// And the command makes none.
    Unknown,
    /// It can be made once its configuration comes along.
    Defaults,
}

/// What became of a command.
#[derive(Debug)]
pub(super) enum Fate<A> {
    /// It was executed.
    Answered(A),
    /// It was not: the generation is another one.
    Changed(GenerationChanged),
    /// It was not: there is no such region.
    Missing(Missing),
}

/// A script's reply.
#[derive(Debug)]
pub(super) struct Told<A> {
    /// The store's clock at the step.
    pub(super) now: StoreTime,
    /// The life of the data.
    pub(super) generation: Option<Generation>,
    /// The region after the step.
    pub(super) signal: Option<RegionSignal>,
    /// The generation began in this very step.
    pub(super) began: bool,
    /// What became of the command.
    pub(super) fate: Fate<A>,
}

fn told<A: DeserializeOwned, B>(
    reply: &[u8],
    answer: impl FnOnce(A) -> Result<B, WireError>,
) -> Result<Told<B>, WireError> {
    let envelope: Envelope<A> = unpack(reply)?;
    let fate = match (envelope.a, envelope.c, envelope.m) {
        (Some(a), ..) => Fate::Answered(answer(a)?),
        (_, Some(changed), _) => Fate::Changed(changed),
        (.., Some(missing)) => Fate::Missing(missing),
        _ => return Err(WireError::Missing("the answer of a script")),
    };
    Ok(Told {
        now: envelope.t,
        generation: envelope.g,
        signal: envelope.s,
        began: envelope.n,
        fate,
    })
}
