//! What a window knew of what comes next, as it stands in a line.
//!
//! Phantoms slide with time: from one window to the next the oldest go and some come. So a line
//! tells from when on those of the window before stay, and the new ones.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{
    decision::{Foresight, Phantom, Waiting},
    domain::UnixMs,
};

/// A window's foresight.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AheadLine {
    /// From when on the phantoms of the window before stay; absent: none of them does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept_from_ms: Option<UnixMs>,
    /// New ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phantoms: Vec<Phantom>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Waiting>,
}

impl AheadLine {
    /// Tells `foresight` against that of the window before; nothing where there is none.
    pub(super) fn tell(foresight: &Foresight, before: Option<&Foresight>) -> Option<Self> {
        if foresight.is_empty() {
            return None;
        }
        let phantoms = foresight.phantoms();
        let known = before.map_or(&[][..], Foresight::phantoms);
        let from = phantoms.first().map(|phantom| phantom.at_ms);
        let new = from.and_then(|from| added(phantoms, kept(known, from)));
        Some(Self {
            kept_from_ms: from.filter(|_| new.is_some()),
            phantoms: new.unwrap_or_else(|| phantoms.to_vec()),
            waiting: foresight.waiting().to_vec(),
        })
    }

    /// The foresight that was told.
    pub(super) fn read(self, before: Option<&Foresight>) -> Foresight {
        let known = before.map_or(&[][..], Foresight::phantoms);
        let stay = self.kept_from_ms.map_or(&[][..], |from| kept(known, from));
        let phantoms = stay.iter().copied().chain(self.phantoms).collect();
        Foresight::new(phantoms, self.waiting)
    }
}

/// Those from an instant on, of phantoms in order.
fn kept(phantoms: &[Phantom], from: UnixMs) -> &[Phantom] {
    let gone = phantoms.partition_point(|phantom| phantom.at_ms < from);
    &phantoms[gone..]
}

/// What `now` has beyond `kept`, both in order; nothing when it lacks some of those.
fn added(now: &[Phantom], kept: &[Phantom]) -> Option<Vec<Phantom>> {
    let mut kept = kept.iter().peekable();
    let mut new = Vec::new();
    for phantom in now {
        if kept.next_if(|k| k.order(phantom) == Ordering::Equal).is_none() {
            new.push(*phantom);
        }
    }
    kept.next().is_none().then_some(new)
}
