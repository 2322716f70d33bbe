//! The course of a solve under constraints, from the answer without them to the proven one.
//!
//! 1. The answer without constraints, if it keeps them, is the optimum, and its prices prove it with
//!    every multiplier 0.
//! 2. Else the greedy rule makes it a valid answer, and the relaxation is solved with whole
//!    multipliers. Mostly its bound is the cost of an answer already met: prices and multipliers
//!    prove it.
//! 3. Else the search goes through what is left, at a finer scale of costs.
//!
//! An answer that lacks what floors ask for gets multipliers from a relaxation that asks for no more
//! than it reaches, since those of the search say only that more is out of reach. One that may still
//! reach more, since the search was cut, is bounded by the answer without constraints alone.
//!
//! The budget may end at any step: the best valid answer and the best bound so far are handed over.

use std::rc::Rc;

use super::LpBackend;
use super::branch::Search;
use super::problem::{Column, Incumbent, Problem, Rows, Settled};
use super::relaxation::{Ended, Node, Point, Relaxed};
use crate::budget::Deadline;
use crate::constraints::fill;
use crate::solve::SolveError;
use crate::{Constraints, Graph, Method, Proof, Solution, Status};

/// Makes the solution of a graph without constraints one under constraints.
pub(crate) fn under_constraints(
    graph: &Graph,
    constraints: &Constraints,
    backend: LpBackend,
    free: Solution,
    deadline: &Deadline,
) -> Result<Solution, SolveError> {
    let problem = Problem::new(graph, constraints, backend)?;
    let found = Column::new(&problem, free.driver_of.clone());
    if constraints.hold(&found.counts) || free.status == Status::Empty {
        let unmoved = vec![0; constraints.len()];
        let constraints = found.answers(&problem, &unmoved);
        return Ok(Solution {
            constraints,
            ..free
        });
    }
    let nobody = vec![None; graph.requests()];
    let mut incumbent = Incumbent::new(&problem, filled(&problem, &nobody));
    if free.method == Method::GreedyEdge {
        return Ok(answer(&problem, free, incumbent, &[], false));
    }
    incumbent.offer(&problem, filled(&problem, &free.driver_of));
    let free = Solution {
        method: Method::Lp,
        ..free
    };
    if free.status == Status::Feasible {
        // the budget ended before the constraints were looked at
        return Ok(answer(&problem, free, incumbent, &[], false));
    }

    let columns = vec![Rc::new(incumbent.best.clone()), Rc::new(found)];
    let still = vec![0; constraints.len()];
    let relaxed = relax(&problem, &still, columns, &mut incumbent, deadline);
    // what is optimal must not depend on where a budget ended: a cut step adds nothing
    if relaxed.ended != Ended::Cut
        && let Some(best) = &relaxed.best
    {
        incumbent.offer(&problem, filled(&problem, &best.column.driver_of));
    }
    let mut points: Vec<Point> = relaxed.best.into_iter().collect();
    let mut proven = points.iter().any(|point| point.value >= incumbent.value)
        || search(
            &problem,
            &points,
            &relaxed.columns,
            &mut incumbent,
            deadline,
        );

    if problem.lacking(&incumbent.best.counts) > 0 {
        let reached = problem.reached(&incumbent.best.counts);
        let mut asked = Incumbent::new(&reached, incumbent.best.clone());
        let again = relax(&reached, &still, relaxed.columns, &mut asked, deadline);
        proven &= again.ended != Ended::Cut;
        points.splice(0..0, again.best);
    }
    Ok(answer(&problem, free, incumbent, &points, proven))
}

fn relax(
    problem: &Problem<'_>,
    start: &[i64],
    columns: Vec<Rc<Column>>,
    incumbent: &mut Incumbent,
    deadline: &Deadline,
) -> Relaxed {
    let rows = Rows::new(problem, &Settled::default(), 1);
    let node = Node {
        problem,
        rows: &rows,
        deadline,
    };
    node.relax(start, columns, incumbent)
}

/// Looks for anything better; false when it was cut short.
fn search(
    problem: &Problem<'_>,
    points: &[Point],
    columns: &[Rc<Column>],
    incumbent: &mut Incumbent,
    deadline: &Deadline,
) -> bool {
    let Some(best) = points.first() else {
        return false;
    };
    let scale = problem.finest;
    let start: Vec<i64> = best.multipliers.iter().map(|m| m * scale).collect();
    let search = Search {
        problem,
        deadline,
        scale,
    };
    search.run(&start, columns.to_vec(), incumbent)
}

/// The solution, with the best of the bounds that points (at scale 1) and `free` prove for it.
fn answer(
    problem: &Problem<'_>,
    free: Solution,
    incumbent: Incumbent,
    points: &[Point],
    proven: bool,
) -> Solution {
    let best = incumbent.best;
    let reached = problem.reached(&best.counts);
    let lacking = problem.lacking(&best.counts) > 0;
    // a bound at what the floors reach is none for who may reach more
    let points = if lacking && !proven { &[] } else { points };
    let mut solution = Solution {
        constraints: best.answers(problem, &vec![0; problem.constraints.len()]),
        objective: best.cost,
        driver_of: best.driver_of.clone(),
        ..free
    };
    for point in points {
        let sum = |prices: &[i64]| prices.iter().map(|&price| i128::from(price)).sum::<i128>();
        let bound = sum(&point.request_prices)
            - sum(&point.driver_prices)
            - reached.taken_off(&point.multipliers);
        let Ok(bound) = i64::try_from(bound) else {
            continue;
        };
        if bound > solution.dual_bound {
            solution.dual_bound = bound;
            solution.request_prices.clone_from(&point.request_prices);
            solution.driver_prices.clone_from(&point.driver_prices);
            solution.constraints = best.answers(problem, &point.multipliers);
        }
    }
    let closed = solution.dual_bound == solution.objective && !lacking;
    (solution.status, solution.proof) = match (closed, proven) {
        (true, _) => (Status::Optimal, Proof::Prices),
        (false, true) => (Status::Optimal, Proof::BranchAndBound),
        (false, false) => (Status::Feasible, Proof::Prices),
    };
    solution
}

fn filled(problem: &Problem<'_>, from: &[Option<u32>]) -> Column {
    let driver_of = fill(problem.graph, problem.constraints, from);
    Column::new(problem, driver_of)
}
