//! The side constraints of an own window, brought to what takes part in its decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    decision::SideConstraint,
    domain::{DriverId, RequestId},
    protocol::{OwnClaimed, RequestDraft},
};

/// The constraints with the pairs that they count and that stand already.
pub(super) fn standing(
    constraints: &[SideConstraint],
    already: &[OwnClaimed],
) -> Vec<SideConstraint> {
    let mut constraints = constraints.to_vec();
    for constraint in &mut constraints {
        constraint.sort();
        let counted = already
            .iter()
            .filter(|pair| constraint.counts(&pair.request_id, &pair.driver_id));
        constraint.standing = counted.count() as u32;
    }
    constraints
}

/// The constraints without drivers and requests that take no part.
pub(super) fn taking_part(
    mut constraints: Vec<SideConstraint>,
    drafts: &BTreeMap<RequestId, Arc<RequestDraft>>,
    drivers: &BTreeSet<&DriverId>,
) -> Vec<SideConstraint> {
    for constraint in &mut constraints {
        if let Some(ids) = &mut constraint.drivers {
            ids.retain(|id| drivers.contains(id));
        }
        if let Some(ids) = &mut constraint.requests {
            ids.retain(|id| drafts.contains_key(id));
        }
    }
    constraints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CostMs, DurationMs, Fence, Place, UnixMs};

    fn driver(id: &str) -> DriverId {
        DriverId::new(id).unwrap()
    }

    fn request(id: &str) -> RequestId {
        RequestId::new(id).unwrap()
    }

    fn claimed(id: &str, by: &str) -> OwnClaimed {
        OwnClaimed {
            request_id: request(id),
            driver_id: driver(by),
            fence: Fence::new(1),
            lease_until_ms: UnixMs::new(1),
            lease_ms: DurationMs::new(1),
            eta: DurationMs::new(1),
            cost: CostMs::new(1),
        }
    }

    #[test]
    fn pairs_of_another_node_stand_and_who_takes_no_part_is_passed_over() {
        let side = SideConstraint {
            name: "cap".into(),
            drivers: Some(vec![driver("z"), driver("b"), driver("a")]),
            requests: Some(vec![request("s"), request("r"), request("r")]),
            max: Some(2),
            min: None,
            standing: 0,
        };
        let already = [claimed("r", "z"), claimed("r", "y"), claimed("t", "z")];
        let given = standing(&[side], &already);
        assert_eq!(given[0].standing, 1);
        let place = Place::new(1.0, 2.0).unwrap();
        let drafts = BTreeMap::from([(
            request("s"),
            Arc::new(RequestDraft::at(request("s"), place)),
        )]);
        let (a, b) = (driver("a"), driver("b"));
        let left = taking_part(given, &drafts, &BTreeSet::from([&a, &b]));
        assert_eq!(left[0].requests, Some(vec![request("s")]));
        assert_eq!(left[0].drivers, Some(vec![a, b]));
    }
}
