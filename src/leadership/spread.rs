//! Spreading regions over nodes: every node works out the same shares from the same names, so
//! nothing has to be agreed on.
//!
//! Rendezvous hashing with bounded loads: each region goes to the live node that ranks highest for
//! it and is not full. Shares differ by one region at most, and when a node comes or goes mostly
//! its own regions move (Thaler and Ravishankar 1998; Mirrokni, Thorup and Zadimoghaddam 2018).

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::domain::{NodeId, RegionId};

/// The regions that `node` should lead, of all `regions`, while `nodes` are alive. A node that is
/// not among them has no share. O(regions × nodes × log nodes).
pub fn share_of(
    node: &NodeId,
    regions: &BTreeSet<RegionId>,
    nodes: &BTreeSet<NodeId>,
) -> BTreeSet<RegionId> {
    let Some(least) = regions.len().checked_div(nodes.len()) else {
        return BTreeSet::new();
    };
    // so many nodes lead one region more than the least
    let mut one_more = regions.len() % nodes.len();
    let mut loads: BTreeMap<&NodeId, usize> = nodes.iter().map(|node| (node, 0)).collect();
    let mut share = BTreeSet::new();
    for region in regions {
        let mut ranked: Vec<&NodeId> = nodes.iter().collect();
        ranked.sort_by_key(|node| (std::cmp::Reverse(rank(node, region)), *node));
        for candidate in ranked {
            let Some(load) = loads.get_mut(candidate) else {
                continue;
            };
            if *load > least || (*load == least && one_more == 0) {
                continue;
            }
            if *load == least {
                one_more -= 1;
            }
            *load += 1;
            if candidate == node {
                share.insert(region.clone());
            }
            break;
        }
    }
    share
}

fn rank(node: &NodeId, region: &RegionId) -> u64 {
    xxh3_64(format!("{node}/{region}").as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names<T: Ord, E: std::fmt::Debug>(
        of: fn(&str) -> Result<T, E>,
        prefix: &str,
        n: usize,
    ) -> BTreeSet<T> {
        (0..n)
            .map(|i| of(&format!("{prefix}{i}")).unwrap())
            .collect()
    }

    proptest! {
        #[test]
        fn every_region_has_one_leader_and_shares_are_even(regions in 0..150_usize, nodes in 1..8_usize) {
            let (regions, nodes) =
                (names(RegionId::new, "r", regions), names(NodeId::new, "n", nodes));
            let shares: Vec<_> = nodes.iter().map(|n| share_of(n, &regions, &nodes)).collect();
            let all: BTreeSet<RegionId> = shares.iter().flatten().cloned().collect();
            prop_assert_eq!(&all, &regions);
            prop_assert_eq!(shares.iter().map(BTreeSet::len).sum::<usize>(), regions.len());
            let sizes = shares.iter().map(BTreeSet::len);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_node_that_goes_mostly_moves_its_own_regions() {
        let regions = names(RegionId::new, "r", 120);
        let all = names(NodeId::new, "n", 4);
        let gone = NodeId::new("n2").unwrap();
        let left: BTreeSet<NodeId> = all.iter().filter(|n| **n != gone).cloned().collect();
        let moved: usize = left
            .iter()
            .map(|n| {
                share_of(n, &regions, &all)
                    .difference(&share_of(n, &regions, &left))
                    .count()
            })
            .sum();
        assert!(moved <= 20, "{moved} regions of the other nodes moved");
    }

    #[test]
    fn a_node_that_is_not_alive_has_no_share() {
        let regions = names(RegionId::new, "r", 5);
        let alive = names(NodeId::new, "n", 2);
        let other = NodeId::new("x").unwrap();
        assert!(share_of(&other, &regions, &alive).is_empty());
        assert!(share_of(&other, &regions, &BTreeSet::new()).is_empty());
    }
}
