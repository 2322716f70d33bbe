//! The linear programming solvers behind `good_lp`.

use good_lp::{Constraint, Solution, SolverModel, Variable, variable::UnsolvedProblem};

/// Which solver solves linear programs.
///
/// Answers do not depend on it, but for a choice among answers of the same cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LpBackend {
    /// `microlp`, written in Rust: always there.
    Microlp,
    /// `HiGHS`, written in C++: with the feature `highs`.
    #[cfg(feature = "highs")]
    Highs,
}

impl Default for LpBackend {
    /// `HiGHS` where it was built in.
    fn default() -> Self {
        #[cfg(feature = "highs")]
        return Self::Highs;
        #[cfg(not(feature = "highs"))]
        Self::Microlp
    }
}

impl LpBackend {
    /// The values of some variables at an optimum; none where the solver found none.
    pub(super) fn values(
        self,
        problem: UnsolvedProblem,
        rows: Vec<Constraint>,
        wanted: &[Variable],
    ) -> Option<Vec<f64>> {
        match self {
            Self::Microlp => solved(
                problem.using(good_lp::solvers::microlp::microlp),
                rows,
                wanted,
            ),
            #[cfg(feature = "highs")]
            Self::Highs => {
                use good_lp::solvers::highs::{HighsParallelType, highs};
                // one thread: the same answer every time
                let model = problem.using(highs).set_parallel(HighsParallelType::Off);
                solved(model.set_threads(1), rows, wanted)
            }
        }
    }
}

fn solved<M: SolverModel>(
    mut model: M,
    rows: Vec<Constraint>,
    wanted: &[Variable],
) -> Option<Vec<f64>> {
    for row in rows {
        model.add_constraint(row);
    }
    let solution = model.solve().ok()?;
    let values: Vec<f64> = wanted.iter().map(|&v| solution.value(v)).collect();
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some(values)
}
