//! Which node serves which slot, out of what the nodes say.

use std::{ops::RangeInclusive, sync::Arc};

use super::{endpoint::Endpoint, slot::SLOTS};

/// A node, as another one (or itself) describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) endpoint: Endpoint,
    pub(super) primary: bool,
    /// Of two nodes that claim a slot, the one with the higher epoch has it.
    epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
}

/// Reads the reply to `CLUSTER NODES`, leaving out nodes that cannot be reached by anybody.
///
/// `CLUSTER SLOTS` would be shorter, but does not tell the epochs, without which the words of a
/// node that was cut off cannot be told from those of the others. `by_name`: nodes are reached by
/// the host names that they announce, which is what their certificates are made out for.
pub(super) fn read_nodes(text: &str, asked: &Endpoint, by_name: bool) -> Vec<Node> {
    let node = |line| read_node(line, asked, by_name);
    text.lines().filter_map(node).collect()
}

/// `id ip:port@busport[,hostname[,…]] flags primary ping pong epoch link slot…`
fn read_node(line: &str, asked: &Endpoint, by_name: bool) -> Option<Node> {
    let mut fields = line.split_ascii_whitespace();
    let mut address = fields.nth(1)?.split(',');
    let flags = fields.next()?;
    if flags
        .split(',')
        .any(|flag| matches!(flag, "noaddr" | "handshake"))
    {
        return None;
    }
    let epoch = fields.nth(3)?.parse().ok()?;
    let ip_and_port = address.next()?.split('@').next()?;
    let mut endpoint = Endpoint::told(ip_and_port, asked)?;
    if by_name && let Some(name) = address.next().filter(|name| !name.is_empty()) {
        endpoint.host = Arc::from(name);
    }
    Some(Node {
        endpoint,
        primary: flags.split(',').any(|flag| flag == "master"),
        epoch,
        slots: fields.skip(1).filter_map(read_slots).collect(),
    })
}

/// `7` or `7-9`; a slot on its way, `[7->-id]`, is still where it was.
fn read_slots(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < SLOTS).then_some(first..=last)
}

/// The server of each slot.
#[derive(Debug, Clone)]
pub(super) struct SlotMap<T> {
    /// Index into `servers`.
    owners: Box<[u16]>,
    servers: Vec<T>,
}

const NOBODY: u16 = u16::MAX;

impl<T> Default for SlotMap<T> {
    fn default() -> Self {
        Self {
            owners: vec![NOBODY; usize::from(SLOTS)].into(),
            servers: Vec::new(),
        }
    }
}

impl<T: Clone + PartialEq> SlotMap<T> {
    /// The map on which the views agree, or that the higher epoch gives where they do not.
    pub(super) fn of_views(views: &[Vec<Node>], mut server: impl FnMut(&Endpoint) -> T) -> Self {
        let mut map = Self::default();
        let mut epochs = vec![None; usize::from(SLOTS)];
        for node in views.iter().flatten().filter(|node| node.primary) {
            for slot in node.slots.iter().cloned().flatten() {
                let epoch = &mut epochs[usize::from(slot)];
                if epoch.is_none_or(|epoch| epoch < node.epoch) {
                    *epoch = Some(node.epoch);
                    map.set(slot, &server(&node.endpoint));
                }
            }
        }
        map
    }

    pub(super) fn get(&self, slot: u16) -> Option<&T> {
        let owner = *self.owners.get(usize::from(slot))?;
        self.servers.get(usize::from(owner))
    }

    pub(super) fn set(&mut self, slot: u16, server: &T) {
        let known = self.servers.iter().position(|known| known == server);
        let index = known.unwrap_or_else(|| {
            self.servers.push(server.clone());
            self.servers.len() - 1
        });
        if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
            *owner = u16::try_from(index).unwrap_or(NOBODY);
        }
    }

    /// The servers that have a slot, and perhaps some that had one.
    pub(super) fn servers(&self) -> &[T] {
        &self.servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
07c3 127.0.0.1:30004@31004,host4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,host2,shard-id=1 master - 0 1426238316232 2 connected 5461-10922 [77->-e7d1]
e7d1 :30001@31001,host1 myself,master - 0 0 1 connected 0-5459 5460 16383
9a1b 127.0.0.1:30009@31009 master,fail - 1 2 3 disconnected 10923-16382
aaaa :0@0 master,noaddr - 1 2 9 disconnected 0-16383
nonsense";

    fn seed() -> Endpoint {
        Endpoint::new("seed", 1)
    }

    fn port(map: &SlotMap<u16>, slot: u16) -> Option<u16> {
        map.get(slot).copied()
    }

    #[test]
    fn nodes_are_read() {
        let nodes = read_nodes(NODES, &seed(), false);
        let found: Vec<_> = nodes
            .iter()
            .map(|node| (node.endpoint.to_string(), node.primary, node.epoch))
            .collect();
        assert_eq!(
            found,
            [
                ("127.0.0.1:30004".to_owned(), false, 4),
                ("127.0.0.1:30002".to_owned(), true, 2),
                ("seed:30001".to_owned(), true, 1),
                ("127.0.0.1:30009".to_owned(), true, 3),
            ]
        );
        assert_eq!(nodes[1].slots, [5461..=10_922]);
        assert_eq!(nodes[2].slots, [0..=5459, 5460..=5460, 16_383..=16_383]);
        let named = read_nodes(NODES, &seed(), true);
        assert_eq!(named[0].endpoint.to_string(), "host4:30004");
        assert_eq!(named[3].endpoint.to_string(), "127.0.0.1:30009");
    }

    #[test]
    fn of_two_that_claim_a_slot_the_one_with_the_higher_epoch_has_it() {
        let old = read_nodes(NODES, &seed(), false);
        let new = read_nodes(
            "07c3 127.0.0.1:30004@31004 master - 0 1 5 connected 5461-10922",
            &seed(),
            false,
        );
        for views in [[old.clone(), new.clone()], [new, old]] {
            let map = SlotMap::of_views(&views, |endpoint| endpoint.port);
            assert_eq!(port(&map, 0), Some(30_001));
            assert_eq!(port(&map, 7_000), Some(30_004));
            assert_eq!(port(&map, 16_383), Some(30_001));
            assert_eq!(port(&map, 16_000), Some(30_009));
        }
    }

    #[test]
    fn a_slot_that_moved_is_found_at_its_new_place() {
        let mut map = SlotMap::<u16>::default();
        assert_eq!(port(&map, 5), None);
        map.set(5, &1);
        map.set(6, &1);
        map.set(5, &2);
        map.set(SLOTS, &3);
        assert_eq!(
            (port(&map, 5), port(&map, 6), port(&map, 7)),
            (Some(2), Some(1), None)
        );
        assert_eq!(port(&map, SLOTS), None);
    }
}
