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
        if kept
            .next_if(|k| k.order(phantom) == Ordering::Equal)
            .is_none()
        {
            new.push(*phantom);
        }
    }
    kept.next().is_none().then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{Place, RequestId},
        supply::Position,
    };

    fn phantom(at: i64, lat: f64) -> Phantom {
        Phantom {
            learned: false,
            at_ms: UnixMs::new(at),
            pickup: Position::new(Place::new(lat, 90.0).unwrap()),
        }
    }

    /// Windows one after the other, each told against the one before.
    #[test]
    fn what_was_told_reads_back_and_what_stays_is_not_told_again() {
        let waiting = vec![Waiting {
            request_id: RequestId::new("r").unwrap(),
            planned_since_ms: Some(UnixMs::new(3)),
            deadline_ms: None,
        }];
        let windows = [
            Foresight::new(
                vec![phantom(1, 2.0), phantom(2, 1.0), phantom(2, 1.0)],
                vec![],
            ),
            // the oldest goes, two come, one of them between those that stay
            Foresight::new(
                [2, 2, 2, 5].map(|at| phantom(at, 1.0)).to_vec(),
                waiting.clone(),
            ),
            Foresight::default(),
            Foresight::new(vec![phantom(2, 1.0)], vec![]),
            Foresight::new(vec![phantom(2, 9.0), phantom(7, 1.0)], vec![]),
            Foresight::new(vec![], waiting),
        ];
        let told_again = [3, 2, 0, 1, 2, 0];
        let mut before: Option<Foresight> = None;
        for (window, new) in windows.into_iter().zip(told_again) {
            let line = AheadLine::tell(&window, before.as_ref());
            let text = serde_json::to_string(&line).unwrap();
            let line: Option<AheadLine> = serde_json::from_str(&text).unwrap();
            let phantoms = line.as_ref().map_or(0, |line| line.phantoms.len());
            assert_eq!(phantoms, new, "{text}");
            let read = line.map_or_else(Foresight::default, |line| line.read(before.as_ref()));
            assert_eq!(read, window);
            before = Some(window);
        }
    }
}
