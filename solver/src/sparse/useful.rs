//! Which edges can be of use, and the side to start from.

use crate::Graph;
use crate::budget::Meter;

/// The useful edges of a graph, those that cost less than leaving the request unmatched: where the
/// edges of each node start and end.
pub(crate) struct Useful {
    pub(crate) of_requests: Vec<u32>,
    pub(crate) of_drivers: Vec<u32>,
}

impl Useful {
    /// Counts them; nothing when the search has to end.
    pub(crate) fn edges(graph: &Graph, meter: &mut Meter<'_>) -> Option<Self> {
        let mut of_requests = vec![0_u32; graph.requests() + 1];
        let mut of_drivers = vec![0_u32; graph.drivers() + 1];
        for request in 0..graph.requests() {
            let (drivers, costs) = graph.row_slices(request);
            if meter.search_is_over_after(drivers.len() + 1) {
                return None;
            }
            let unmatched_cost = graph.unmatched_cost(request);
            let mut useful = 0;
            for (&driver, &cost) in drivers.iter().zip(costs) {
                let counts = u32::from(cost < unmatched_cost);
                of_drivers[driver as usize + 1] += counts;
                useful += counts;
            }
            of_requests[request + 1] = useful;
        }
        sum_up(&mut of_requests);
        sum_up(&mut of_drivers);
        Some(Self {
            of_requests,
            of_drivers,
        })
    }

    /// Are there fewer drivers with edges than requests with edges?
    pub(crate) fn drivers_are_scarce(&self) -> bool {
        let with_edges =
            |offsets: &[u32]| offsets.windows(2).filter(|row| row[0] != row[1]).count();
        with_edges(&self.of_drivers) < with_edges(&self.of_requests)
    }
}

/// From counts, each one place further on, to offsets.
pub(super) fn sum_up(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}
