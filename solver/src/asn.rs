//! The `.asn` text format: one assignment instance a file.
//!
//! ```text
//! p asn <requests> <drivers> <edges>      first
//! c unmatched_cost <integer>              once, for every request
//! a <request> <driver> <cost>             one an edge, 0-based
//! c anything else                         a comment
//! ```
//!
//! Promise: [`parse`] refuses whatever departs from that, with file and line, and never panics; its
//! memory grows with the lines read, not with what the header declares (up to [`MAX_NODES`]).
//! Costs are integers in the file's own unit.

use std::io::{self, BufRead, Write};

use crate::{Graph, GraphError};

/// Most requests and drivers together that a header may declare: 20 million, for which prices and
/// offsets take some 400 MB.
pub const MAX_NODES: u64 = 20_000_000;

/// Longest line in bytes.
const MAX_LINE: usize = 4096;

/// Edges room is made for before they are read.
const EDGES_AHEAD: u64 = 1 << 20;

/// Why a file is no instance. The message names the file, and the line where there is one.
#[derive(Debug, thiserror::Error)]
pub enum AsnError {
    /// The file could not be read.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is not as it should be.
    #[error("{name}:{line}: {problem}")]
    Line {
        /// The file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// Something is missing at the end of the file.
    #[error("{name}: {problem}")]
    End {
        /// The file.
        name: String,
        /// What is missing.
        problem: Problem,
    },
    /// The instance is no valid graph.
    #[error("{name}: {source}")]
    Graph {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: GraphError,
    },
}

/// What is wrong with a file or a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file has no `p` line.
    #[error("no `p asn <requests> <drivers> <edges>` line")]
    NoHeader,
    /// A line stands before the `p` line.
    #[error("the first line must be `p asn <requests> <drivers> <edges>`")]
    BeforeHeader,
    /// A second `p` line.
    #[error("a second `p` line")]
    SecondHeader,
    /// A `p` line of the wrong form.
    #[error("expected `p asn <requests> <drivers> <edges>` with counts from 0")]
    Header,
    /// The header declares more than is supported.
    #[error("{requests} requests and {drivers} drivers: at most {MAX_NODES} together")]
    TooManyNodes {
        /// Requests declared.
        requests: u64,
        /// Drivers declared.
        drivers: u64,
    },
    /// The header declares more edges than pairs, or than an index can name.
    #[error("{edges} edges are more than can be")]
    TooManyEdges {
        /// Edges declared.
        edges: u64,
    },
    /// No `c unmatched_cost` line.
    #[error("no `c unmatched_cost <integer>` line")]
    NoUnmatchedCost,
    /// A second `c unmatched_cost` line.
    #[error("a second `c unmatched_cost` line")]
    SecondUnmatchedCost,
    /// A `c unmatched_cost` line of the wrong form.
    #[error("expected `c unmatched_cost <integer>`")]
    UnmatchedCost,
    /// An `a` line of the wrong form.
    #[error("expected `a <request> <driver> <cost>` with integers")]
    Edge,
    /// A request that the header does not declare.
    #[error("request {request} is outside 0..{requests}")]
    RequestOutside {
        /// The request.
        request: u64,
        /// Requests declared.
        requests: u64,
    },
    /// A driver that the header does not declare.
    #[error("driver {driver} is outside 0..{drivers}")]
    DriverOutside {
        /// The driver.
        driver: u64,
        /// Drivers declared.
        drivers: u64,
    },
    /// More or fewer edges than the header declares.
    #[error("{found} edges, but the `p` line declares {declared}")]
    EdgeCount {
        /// Edges declared.
        declared: u64,
        /// Edges found, or found so far.
        found: u64,
    },
    /// A line that starts with none of `p`, `c`, `a`.
    #[error("expected a line that starts with `p`, `c` or `a`")]
    Junk,
    /// A line that is too long.
    #[error("longer than {MAX_LINE} bytes")]
    LineTooLong,
}

/// Parses an instance; `name` stands for the file in messages.
///
/// Lines may end in `\n` or `\r\n`, fields are separated by blanks or tabs, blank lines are ignored.
/// O(bytes).
///
/// # Errors
/// [`AsnError`] at the first thing wrong.
pub fn parse(input: impl BufRead, name: &str) -> Result<Instance, AsnError> {
    let mut reader = Reader::default();
    let line = |line, problem| AsnError::Line {
        name: name.to_owned(),
        line,
        problem,
    };
    let mut lines = Lines::new(input);
    while let Some(text) = lines.next_line().map_err(|source| AsnError::Io {
        name: name.to_owned(),
        source,
    })? {
        if text.len() > MAX_LINE {
            return Err(line(lines.number, Problem::LineTooLong));
        }
        if let Err(problem) = reader.line(text) {
            return Err(line(lines.number, problem));
        }
    }
    let end = |problem| AsnError::End {
        name: name.to_owned(),
        problem,
    };
    let header = reader.header.ok_or_else(|| end(Problem::NoHeader))?;
    let unmatched_cost = reader
        .unmatched_cost
        .ok_or_else(|| end(Problem::NoUnmatchedCost))?;
    let found = reader.edges.len() as u64;
    if found != header.edges {
        return Err(end(Problem::EdgeCount {
            declared: header.edges,
            found,
        }));
    }
    Ok(Instance {
        requests: header.requests as usize,
        drivers: header.drivers as usize,
        unmatched_cost,
        edges: reader.edges,
    })
}

/// Reads an instance and builds its graph.
///
/// # Errors
/// As [`parse`], and [`AsnError::Graph`].
pub fn read(input: impl BufRead, name: &str) -> Result<Graph, AsnError> {
    let instance = parse(input, name)?;
    instance.graph().map_err(|source| AsnError::Graph {
        name: name.to_owned(),
        source,
    })
}

/// What a file says, before it is a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Number of requests.
    pub requests: usize,
    /// Number of drivers.
    pub drivers: usize,
    /// Unmatched cost of every request.
    pub unmatched_cost: i64,
    /// Edges (request, driver, cost), in the order of the file.
    pub edges: Vec<(u32, u32, i64)>,
}

impl Instance {
    /// Builds the graph.
    ///
    /// # Errors
    /// As [`Graph::from_edges`].
    pub fn graph(&self) -> Result<Graph, GraphError> {
        let unmatched_costs = vec![self.unmatched_cost; self.requests];
        Graph::from_edges(
            self.requests,
            self.drivers,
            unmatched_costs,
            self.edges.iter().copied(),
        )
    }
}

/// Writes a graph whose requests share one unmatched cost; [`read`] gives the same graph back.
///
/// A graph without requests is written with unmatched cost 0. O(E).
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] when unmatched costs differ, which the format cannot say; else
/// those of the output.
pub fn write(graph: &Graph, mut output: impl Write) -> io::Result<()> {
    let unmatched_cost = graph.unmatched_costs().first().copied().unwrap_or(0);
    if graph
        .unmatched_costs()
        .iter()
        .any(|&cost| cost != unmatched_cost)
    {
        let problem = "the .asn format has one unmatched cost for all requests";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    writeln!(
        output,
        "p asn {} {} {}",
        graph.requests(),
        graph.drivers(),
        graph.edges()
    )?;
    writeln!(output, "c unmatched_cost {unmatched_cost}")?;
    for request in 0..graph.requests() {
        for (driver, cost) in graph.row(request) {
            writeln!(output, "a {request} {driver} {cost}")?;
        }
    }
    output.flush()
}

struct Header {
    requests: u64,
    drivers: u64,
    edges: u64,
}

#[derive(Default)]
struct Reader {
    header: Option<Header>,
    unmatched_cost: Option<i64>,
    edges: Vec<(u32, u32, i64)>,
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        let mut fields = Fields(line);
        match fields.next() {
            Some(b"a") => self.edge(fields),
            Some(b"c") => self.comment(fields),
            Some(b"p") => self.header(fields),
            None => Ok(()),
            Some(_) if self.header.is_none() => Err(Problem::BeforeHeader),
            Some(_) => Err(Problem::Junk),
        }
    }

    fn header(&mut self, mut fields: Fields<'_>) -> Result<(), Problem> {
        if self.header.is_some() {
            return Err(Problem::SecondHeader);
        }
        if fields.next() != Some(b"asn") {
            return Err(Problem::Header);
        }
        let [requests, drivers, edges] = fields.integers().ok_or(Problem::Header)?;
        let count = |value: i64| u64::try_from(value).map_err(|_| Problem::Header);
        let (requests, drivers, edges) = (count(requests)?, count(drivers)?, count(edges)?);
        if requests.saturating_add(drivers) > MAX_NODES {
            return Err(Problem::TooManyNodes { requests, drivers });
        }
        if edges > crate::MAX_COUNT as u64 {
            return Err(Problem::TooManyEdges { edges });
        }
        self.edges.reserve(edges.min(EDGES_AHEAD) as usize);
        self.header = Some(Header {
            requests,
            drivers,
            edges,
        });
        Ok(())
    }

    fn comment(&mut self, mut fields: Fields<'_>) -> Result<(), Problem> {
        if self.header.is_none() {
            return Err(Problem::BeforeHeader);
        }
        if fields.next() != Some(b"unmatched_cost") {
            return Ok(());
        }
        if self.unmatched_cost.is_some() {
            return Err(Problem::SecondUnmatchedCost);
        }
        let [unmatched_cost] = fields.integers().ok_or(Problem::UnmatchedCost)?;
        self.unmatched_cost = Some(unmatched_cost);
        Ok(())
    }

    fn edge(&mut self, fields: Fields<'_>) -> Result<(), Problem> {
        let &Header {
            requests,
            drivers,
            edges,
        } = self.header.as_ref().ok_or(Problem::BeforeHeader)?;
        let [request, driver, cost] = fields.integers().ok_or(Problem::Edge)?;
        let index = |value: i64| u64::try_from(value).map_err(|_| Problem::Edge);
        let (request, driver) = (index(request)?, index(driver)?);
        if request >= requests {
            return Err(Problem::RequestOutside { request, requests });
        }
        if driver >= drivers {
            return Err(Problem::DriverOutside { driver, drivers });
        }
        let found = self.edges.len() as u64 + 1;
        if found > edges {
            return Err(Problem::EdgeCount {
                declared: edges,
                found,
            });
        }
        self.edges.push((request as u32, driver as u32, cost));
        Ok(())
    }
}

/// The blank-separated fields of a line.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// Exactly `N` integers and nothing after them.
    fn integers<const N: usize>(mut self) -> Option<[i64; N]> {
        let mut values = [0; N];
        for value in &mut values {
            *value = integer(self.next()?)?;
        }
        self.next().is_none().then_some(values)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |&byte: &u8| matches!(byte, b' ' | b'\t');
        let start = self.0.iter().position(|byte| !blank(byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(blank).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// A decimal integer with an optional minus sign that fits an `i64`.
#[inline]
fn integer(field: &[u8]) -> Option<i64> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_i64;
    for &digit in digits {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        // Built up below zero, where the range reaches one further.
        value = value.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

/// Lines of bounded length out of a buffered reader, without copying those that lie in its buffer.
struct Lines<R> {
    input: R,
    number: usize,
    used: usize,
    split: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            number: 0,
            used: 0,
            split: Vec::new(),
        }
    }

    /// The next line without its end. A line over [`MAX_LINE`] comes cut, but still over it.
    fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.input.consume(std::mem::take(&mut self.used));
        self.split.clear();
        self.number += 1;
        let whole = {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            buffer.iter().position(|&byte| byte == b'\n')
        };
        if let Some(end) = whole {
            self.used = end + 1;
            return Ok(Some(without_return(&self.input.fill_buf()?[..end])));
        }
        // The line runs past the buffer: collect it.
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            self.split
                .extend_from_slice(&buffer[..end.unwrap_or(buffer.len())]);
            let read = end.map_or(buffer.len(), |end| end + 1);
            let last = end.is_some() || buffer.is_empty() || self.split.len() > MAX_LINE + 1;
            self.input.consume(read);
            if last {
                return Ok(Some(without_return(&self.split)));
            }
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
