//! Labels beside the ends of lines, moved apart where they would lie on each other.

/// Moves places apart, in their order, until neighbours are `gap` from each other, inside
/// `top..bottom`. With too many for the room they are spread over it evenly.
pub(super) fn moved_apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]).then(a.cmp(&b)));
    let room = (bottom - top).max(0.0);
    let gap = if wanted.len() > 1 {
        gap.min(room / (wanted.len() - 1) as f64)
    } else {
        gap
    };
    let mut places = vec![0.0; wanted.len()];
    let mut least = top;
    for &n in &order {
        places[n] = wanted[n].clamp(top, bottom).max(least);
        least = places[n] + gap;
    }
    // what was pushed over the lower edge pushes back
    let mut most = bottom;
    for &n in order.iter().rev() {
        places[n] = places[n].min(most);
        most = places[n] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_their_distance() {
        assert_eq!(moved_apart(&[50.0], 14.0, 0.0, 100.0), [50.0]);
        let places = moved_apart(&[98.0, 97.0, 10.0, 99.0], 14.0, 0.0, 100.0);
        assert_eq!(places, [86.0, 72.0, 10.0, 100.0]);
        let crowded = moved_apart(&[5.0; 5], 14.0, 0.0, 40.0);
        assert_eq!(crowded, [0.0, 10.0, 20.0, 30.0, 40.0]);
    }
}
