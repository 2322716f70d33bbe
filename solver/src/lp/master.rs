//! The master program: what some matchings say of the multipliers, and which mean of them is best.
//!
//! The two are dual to each other. [`multipliers`] maximises `θ − Σ p_k max_k + Σ q_k min_k` where no
//! known matching costs less than θ at costs shifted by `p − q`. [`weights`] finds the mean of the
//! matchings that keeps the constraints and costs least. Costs are counted from the first matching's,
//! in units of a window's swing, so that the numbers are about 1.

use std::rc::Rc;

use good_lp::{Expression, Variable, constraint, variable, variables};

use super::problem::{Column, Problem};

/// How far multipliers of a constraint may go at present, as a cap and as a floor, at scale 1.
pub(super) type Reach = Vec<(i64, i64)>;

/// What the master thinks of the multipliers.
pub(super) struct Thought {
    /// No multipliers within reach give a bound above this, at scale 1.
    pub(super) value: f64,
    /// The multipliers that might, cap less floor, at scale 1.
    pub(super) multipliers: Vec<f64>,
    /// Constraints whose multiplier went as far as it may: as a cap, as a floor.
    pub(super) at_end: Vec<(bool, bool)>,
}

/// The best multipliers within reach, as far as these matchings tell; none if the program fails.
pub(super) fn multipliers(
    problem: &Problem<'_>,
    columns: &[Rc<Column>],
    reach: &Reach,
) -> Option<Thought> {
    let (unit, base) = (problem.swing as f64, columns.first()?.cost);
    let mut names = variables!();
    let least = names.add(variable());
    let mut part = |most: i64| names.add(variable().min(0.0).max(most as f64 / unit));
    let parts: Vec<(Variable, Variable)> = reach
        .iter()
        .map(|&(cap, floor)| (part(cap), part(floor)))
        .collect();
    let mut bound = Expression::from(least);
    for (index, &(cap, floor)) in parts.iter().enumerate() {
        let max = problem.constraints.max(index).unwrap_or(0);
        bound.add_mul(-f64::from(max), cap);
        bound.add_mul(f64::from(problem.floors[index]), floor);
    }
    let row = |column: &Rc<Column>| {
        let mut lhs = Expression::from(least);
        for (&count, &(cap, floor)) in column.counts.iter().zip(&parts) {
            lhs.add_mul(-f64::from(count), cap);
            lhs.add_mul(f64::from(count), floor);
        }
        constraint!(lhs <= (column.cost - base) as f64 / unit)
    };
    let rows = columns.iter().map(row).collect();
    let wanted: Vec<Variable> = std::iter::once(least)
        .chain(parts.iter().flat_map(|&(cap, floor)| [cap, floor]))
        .collect();
    let values = problem
        .backend
        .values(names.maximise(bound), rows, &wanted)?;
    let mut value = values[0];
    let (mut multipliers, mut at_end) = (Vec::new(), Vec::new());
    for (index, pair) in values[1..].chunks_exact(2).enumerate() {
        let (cap, floor) = (pair[0], pair[1]);
        value -= cap * f64::from(problem.constraints.max(index).unwrap_or(0));
        value += floor * f64::from(problem.floors[index]);
        multipliers.push((cap - floor) * unit);
        let ends = |value: f64, most: i64| most > 0 && value >= most as f64 / unit * (1.0 - 1e-9);
        at_end.push((ends(cap, reach[index].0), ends(floor, reach[index].1)));
    }
    Some(Thought {
        value: value * unit + base as f64,
        multipliers,
        at_end,
    })
}

/// The weight of each matching in the best mean; none if the program fails.
pub(super) fn weights(problem: &Problem<'_>, columns: &[Rc<Column>]) -> Option<Vec<f64>> {
    let (unit, base) = (problem.swing as f64, columns.first()?.cost);
    let penalty = problem.penalty as f64 / unit;
    let mut names = variables!();
    let weights: Vec<Variable> = columns
        .iter()
        .map(|_| names.add(variable().min(0.0)))
        .collect();
    let mut cost = Expression::default();
    for (column, &weight) in columns.iter().zip(&weights) {
        cost.add_mul((column.cost - base) as f64 / unit, weight);
    }
    let whole: Expression = weights.iter().sum();
    let mut rows = vec![constraint!(whole == 1.0)];
    for (index, &floor) in problem.floors.iter().enumerate() {
        let mut count = Expression::default();
        for (column, &weight) in columns.iter().zip(&weights) {
            count.add_mul(f64::from(column.counts[index]), weight);
        }
        if let Some(max) = problem.constraints.max(index) {
            rows.push(constraint!(count.clone() <= f64::from(max)));
        }
        if floor > 0 {
            let lacking = names.add(variable().min(0.0));
            cost.add_mul(penalty, lacking);
            rows.push(constraint!(count + lacking >= f64::from(floor)));
        }
    }
    problem.backend.values(names.minimise(cost), rows, &weights)
}
