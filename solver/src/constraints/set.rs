//! What a side constraint is, and the checked whole of them.
//!
//! A constraint counts the chosen pairs whose driver is in one set and whose request is in another,
//! and bounds that count from above (a cap), from below (a floor) or both. Membership is a bit a
//! constraint, one word a request and one a driver: a pair is counted by the constraints whose bit
//! stands in both words.

use std::collections::BTreeSet;

use crate::{Graph, GraphError};

/// Most constraints of one graph: one bit each.
pub const MAX_CONSTRAINTS: usize = 64;

/// Longest name of a constraint.
pub const MAX_NAME_BYTES: usize = 128;

/// A named bound on how many chosen pairs lie in a set of pairs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraint {
    /// Its name: 1 to [`MAX_NAME_BYTES`] bytes, no other constraint's.
    pub name: String,
    /// Drivers (columns) whose pairs count; all of them, if absent. Repeats change nothing.
    pub drivers: Option<Vec<u32>>,
    /// Requests (rows) whose pairs count; all of them, if absent. Repeats change nothing.
    pub requests: Option<Vec<u32>>,
    /// At most so many pairs may be chosen.
    pub max: Option<u32>,
    /// At least so many pairs must be chosen, as far as that can be done.
    pub min: Option<u32>,
}

/// Why constraints were refused. Each names the constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// More than [`MAX_CONSTRAINTS`].
    #[error("{count} constraints: at most {MAX_CONSTRAINTS} are supported")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// No name, or one that is too long.
    #[error("constraint {index}: its name must have 1 to {MAX_NAME_BYTES} bytes")]
    Name {
        /// Its position.
        index: usize,
    },
    /// Two constraints share a name.
    #[error("constraint {index}: the name {name:?} is taken by another")]
    DuplicateName {
        /// Position of the second.
        index: usize,
        /// The name.
        name: String,
    },
    /// Neither a cap nor a floor.
    #[error("constraint {name:?} has neither max nor min")]
    Unbounded {
        /// Its name.
        name: String,
    },
    /// The floor lies above the cap.
    #[error("constraint {name:?}: min {min} is above max {max}")]
    MinAboveMax {
        /// Its name.
        name: String,
        /// The floor.
        min: u32,
        /// The cap.
        max: u32,
    },
    /// A member of a set that the graph does not have.
    #[error("constraint {name:?}: {what}[{place}] is {member}, outside 0..{count}")]
    MemberOutside {
        /// The constraint.
        name: String,
        /// `drivers` or `requests`.
        what: &'static str,
        /// Place in that list.
        place: usize,
        /// The index given.
        member: u32,
        /// How many the graph has.
        count: usize,
    },
}

/// Checked constraints of a graph of a given size, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    rules: Vec<Rule>,
    request_words: Vec<u64>,
    driver_words: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    name: String,
    max: Option<u32>,
    min: Option<u32>,
}

impl Constraints {
    /// Checks constraints for a graph with this many requests and drivers, and puts them in the
    /// order of their names, so that the order given never matters. O(R + D + members).
    ///
    /// ```
    /// use kheya_solver::{Constraint, Constraints};
    /// let airport = Constraint { name: "airport".into(), requests: Some(vec![0, 2]), max: Some(1), ..Constraint::default() };
    /// let constraints = Constraints::new(3, 5, vec![airport])?;
    /// assert_eq!(constraints.count(&[Some(4), Some(1), Some(0)]), [2]);
    /// # Ok::<(), kheya_solver::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConstraintError`]: the first thing wrong, by the constraint and the member.
    pub fn new(
        requests: usize,
        drivers: usize,
        mut given: Vec<Constraint>,
    ) -> Result<Self, ConstraintError> {
        check(&given, requests, drivers)?;
        given.sort_by(|a, b| a.name.cmp(&b.name));
        let mut whole = Self {
            rules: Vec::with_capacity(given.len()),
            request_words: vec![0; requests],
            driver_words: vec![0; drivers],
        };
        for (index, constraint) in given.into_iter().enumerate() {
            let bit = 1 << index;
            set_bit(
                &mut whole.request_words,
                constraint.requests.as_deref(),
                bit,
            );
            set_bit(&mut whole.driver_words, constraint.drivers.as_deref(), bit);
            whole.rules.push(Rule {
                name: constraint.name,
                max: constraint.max,
                min: constraint.min,
            });
        }
        Ok(whole)
    }

    /// Number of constraints.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Number of requests and of drivers that the constraints were checked for.
    pub fn size(&self) -> (usize, usize) {
        (self.request_words.len(), self.driver_words.len())
    }

    /// The name of a constraint.
    ///
    /// # Panics
    /// When `index` is not below [`Constraints::len`], as for the next two.
    pub fn name(&self, index: usize) -> &str {
        &self.rules[index].name
    }

    /// The cap of a constraint.
    pub fn max(&self, index: usize) -> Option<u32> {
        self.rules[index].max
    }

    /// The floor of a constraint; one of 0 asks for nothing and is none.
    pub fn min(&self, index: usize) -> Option<u32> {
        self.rules[index].min.filter(|&min| min > 0)
    }

    /// How many pairs of a matching each constraint counts. O(R).
    pub fn count(&self, driver_of: &[Option<u32>]) -> Vec<u32> {
        let mut counts = vec![0; self.len()];
        for (request, &driver) in driver_of.iter().enumerate() {
            if let Some(driver) = driver {
                for index in bits(self.word(request, driver)) {
                    counts[index] += 1;
                }
            }
        }
        counts
    }

    /// Whether all caps and floors hold for these counts.
    pub fn hold(&self, counts: &[u32]) -> bool {
        counts.iter().enumerate().all(|(index, &count)| {
            self.max(index).is_none_or(|max| count <= max) && self.shortfall(index, count) == 0
        })
    }

    /// Whether one pair more of these constraints (a bit each) breaks no cap.
    pub(crate) fn has_room(&self, word: u64, counts: &[u32]) -> bool {
        bits(word).all(|index| self.max(index).is_none_or(|max| counts[index] < max))
    }

    /// The constraints that count a pair; none for a pair outside the graph.
    pub fn counting(&self, request: usize, driver: u32) -> impl Iterator<Item = usize> + use<> {
        bits(self.word(request, driver))
    }

    /// Whether a pair may be chosen beside pairs that give these counts without breaking a cap.
    pub fn admits(&self, request: usize, driver: u32, counts: &[u32]) -> bool {
        self.has_room(self.word(request, driver), counts)
    }

    /// The same constraints on a part of the graph: the rows `requests` and the columns `drivers`,
    /// in that order.
    ///
    /// # Panics
    /// When one is outside the graph.
    #[must_use]
    pub fn part(&self, requests: &[u32], drivers: &[u32]) -> Self {
        let of =
            |words: &[u64], members: &[u32]| members.iter().map(|&m| words[m as usize]).collect();
        Self {
            rules: self.rules.clone(),
            request_words: of(&self.request_words, requests),
            driver_words: of(&self.driver_words, drivers),
        }
    }

    /// What caps still allow and floors still ask for beside pairs that give these counts.
    ///
    /// # Panics
    /// When there are fewer counts than constraints.
    #[must_use]
    pub fn beside(&self, counts: &[u32]) -> Self {
        let rules = self.rules.iter().zip(counts).map(|(rule, &count)| Rule {
            name: rule.name.clone(),
            max: rule.max.map(|max| max.saturating_sub(count)),
            min: rule.min.map(|min| min.saturating_sub(count)),
        });
        Self {
            rules: rules.collect(),
            ..self.clone()
        }
    }

    /// How many pairs a count is below the floor.
    pub fn shortfall(&self, index: usize, count: u32) -> u32 {
        self.min(index).unwrap_or(0).saturating_sub(count)
    }

    /// The constraints that count a pair, one bit each; 0 for a pair outside the graph.
    pub(crate) fn word(&self, request: usize, driver: u32) -> u64 {
        let request = self.request_words.get(request).copied().unwrap_or(0);
        let driver = self.driver_words.get(driver as usize).copied();
        request & driver.unwrap_or(0)
    }

    /// The graph whose edges cost in addition the multipliers of the constraints that count them:
    /// the assignment problem that a certificate with these multipliers speaks of. O(R + D + E).
    ///
    /// # Errors
    /// [`GraphError::CostsTooLarge`] when the multipliers are.
    pub fn shifted(&self, graph: &Graph, multipliers: &[i64]) -> Result<Graph, GraphError> {
        let edges = (0..graph.requests()).flat_map(|request| {
            graph.row(request).map(move |(driver, cost)| {
                let shift = shift(self.word(request, driver), multipliers);
                (request as u32, driver, cost.saturating_add(shift))
            })
        });
        let unmatched = graph.unmatched_costs().to_vec();
        Graph::from_edges(graph.requests(), graph.drivers(), unmatched, edges)
    }
}

/// The places of the bits that are set.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place)
    })
}

/// What the multipliers of the constraints in a word add to a cost.
pub(crate) fn shift(word: u64, multipliers: &[i64]) -> i64 {
    bits(word).fold(0_i64, |sum, index| {
        sum.saturating_add(multipliers.get(index).copied().unwrap_or(0))
    })
}

fn set_bit(words: &mut [u64], members: Option<&[u32]>, bit: u64) {
    match members {
        None => words.iter_mut().for_each(|word| *word |= bit),
        Some(members) => {
            for &member in members {
                words[member as usize] |= bit;
            }
        }
    }
}

fn check(given: &[Constraint], requests: usize, drivers: usize) -> Result<(), ConstraintError> {
    if given.len() > MAX_CONSTRAINTS {
        return Err(ConstraintError::TooMany { count: given.len() });
    }
    let mut names = BTreeSet::new();
    for (index, constraint) in given.iter().enumerate() {
        let name = || constraint.name.clone();
        if !(1..=MAX_NAME_BYTES).contains(&constraint.name.len()) {
            return Err(ConstraintError::Name { index });
        }
        if !names.insert(&constraint.name) {
            return Err(ConstraintError::DuplicateName {
                index,
                name: name(),
            });
        }
        match (constraint.max, constraint.min) {
            (None, None) => return Err(ConstraintError::Unbounded { name: name() }),
            (Some(max), Some(min)) if min > max => {
                return Err(ConstraintError::MinAboveMax {
                    name: name(),
                    min,
                    max,
                });
            }
            _ => {}
        }
        let sets = [
            ("drivers", &constraint.drivers, drivers),
            ("requests", &constraint.requests, requests),
        ];
        for (what, members, count) in sets {
            let mut members = members.iter().flatten().enumerate();
            if let Some((place, &member)) = members.find(|&(_, &m)| m as usize >= count) {
                return Err(ConstraintError::MemberOutside {
                    name: name(),
                    what,
                    place,
                    member,
                    count,
                });
            }
        }
    }
    Ok(())
}
