//! What a solution says of each constraint, and how its answer is proven.

/// What became of one constraint, in the order of [`Constraints`](crate::Constraints).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConstraintAnswer {
    /// Chosen pairs that it counts.
    pub count: u32,
    /// Pairs that its floor lacks. The sum over all floors is the least possible when the status is
    /// `optimal`.
    pub shortfall: u32,
    /// What the constraint adds to the cost of each pair it counts, in the unit of the costs: above
    /// 0 for a cap that binds (about what one pair more would save), below 0 for a floor that binds
    /// (about what the last pair asked for costs).
    pub multiplier: i64,
}

/// What proves an `optimal` answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Proof {
    /// Its prices and multipliers alone: the bound equals the objective.
    #[default]
    Prices,
    /// A search that went through every other answer. Prices and multipliers prove only the bound of
    /// the relaxation, which may lie below: what is left is the gap.
    BranchAndBound,
}

impl Proof {
    /// The name used in reports: `prices`, `branch_and_bound`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prices => "prices",
            Self::BranchAndBound => "branch_and_bound",
        }
    }
}
