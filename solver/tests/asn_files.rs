//! `.asn` files: what is read, what is refused and how the refusal reads.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use std::io::{BufReader, Read};

use kheya_solver::{Graph, asn};
use proptest::prelude::*;
use random_graphs::{Shape, graphs};

fn refusal(text: impl AsRef<[u8]>) -> String {
    let refused = asn::read(text.as_ref(), "window.asn");
    refused.expect_err("must be refused").to_string()
}

#[test]
fn an_instance_is_read() {
    let text =
        "p asn 2 3 3\nc made by hand\nc unmatched_cost 900\na 0 2 -5\r\na  1\t0 7 \n\na 0 1 0";
    let graph = asn::read(text.as_bytes(), "x").expect("valid");
    assert_eq!(
        (graph.requests(), graph.drivers(), graph.edges()),
        (2, 3, 3)
    );
    assert_eq!(graph.unmatched_costs(), [900, 900]);
    assert_eq!(graph.row(0).collect::<Vec<_>>(), [(2, -5), (1, 0)]);
    assert_eq!(graph.row(1).collect::<Vec<_>>(), [(0, 7)]);
    let empty = asn::read("p asn 0 0 0\nc unmatched_cost -3\n".as_bytes(), "x").expect("valid");
    assert_eq!(
        (empty.requests(), empty.drivers(), empty.edges()),
        (0, 0, 0)
    );
}

const HEADER_REFUSALS: &[(&str, &str)] = &[
    ("", ": no `p asn <requests> <drivers> <edges>` line"),
    (
        "c hello\np asn 1 1 0\n",
        ":1: the first line must be `p asn",
    ),
    ("a 0 0 1\n", ":1: the first line must be `p asn"),
    ("x\n", ":1: the first line must be `p asn"),
    ("p asn -1 2 0\n", ":1: expected `p asn"),
    ("p asn 1 2\n", ":1: expected `p asn"),
    ("p asn 1 2 0 0\n", ":1: expected `p asn"),
    ("p max 1 2 0\n", ":1: expected `p asn"),
    ("p asn 99999999999999999999 1 1\n", ":1: expected `p asn"),
    (
        "p asn 4000000000 4000000000 9\n",
        ":1: 4000000000 requests and",
    ),
    ("p asn 5 5 4294967295\n", ":1: 4294967295 edges are more"),
    ("p asn 1 2 0\n", ": no `c unmatched_cost <integer>` line"),
    (
        "p asn 1 1 0\nc unmatched_cost\n",
        ":2: expected `c unmatched_cost",
    ),
    (
        "p asn 1 1 0\nc unmatched_cost 1.5\n",
        ":2: expected `c unmatched_cost",
    ),
];

/// After `p asn 2 2 2` and `c unmatched_cost 10`.
const LINE_REFUSALS: &[(&str, &str)] = &[
    ("p asn 2 2 2\n", ":3: a second `p` line"),
    ("c unmatched_cost 10\n", ":3: a second `c unmatched_cost`"),
    ("a 0 0 1\n", ": 1 edges, but the `p` line declares 2"),
    (
        "a 0 0 1\na 0 1 1\na 1 1 1\n",
        ":5: 3 edges, but the `p` line",
    ),
    ("a 2 0 1\n", ":3: request 2 is outside 0..2"),
    ("a 0 5 3\n", ":3: driver 5 is outside 0..2"),
    ("a -1 0 1\n", ":3: expected `a <request>"),
    ("a 0 0 nan\n", ":3: expected `a <request>"),
    ("a 0 0 1.0\n", ":3: expected `a <request>"),
    ("a 0 0 +1\n", ":3: expected `a <request>"),
    ("a 0 0 1 1\n", ":3: expected `a <request>"),
    ("a 0 0\n", ":3: expected `a <request>"),
    ("a 0 0 -\n", ":3: expected `a <request>"),
    ("a 0 0 9223372036854775808\n", ":3: expected `a <request>"),
    ("b 0 0 1\n", ":3: expected a line that starts with"),
    ("ab 0 0 1\n", ":3: expected a line that starts with"),
];

#[test]
fn refusals_name_the_file_the_line_and_the_problem() {
    let check = |text: &str, says: &str| {
        let refusal = refusal(text);
        assert!(
            refusal.starts_with(&format!("window.asn{says}")),
            "{text:?}: {refusal}"
        );
    };
    for (text, says) in HEADER_REFUSALS {
        check(text, says);
    }
    let head = "p asn 2 2 2\nc unmatched_cost 10\n";
    for (text, says) in LINE_REFUSALS {
        check(&format!("{head}{text}"), says);
    }
    check(
        &format!("{head}c {}\n", "x".repeat(5000)),
        ":3: longer than 4096 bytes",
    );
    let costs = "p asn 2 2 2\nc unmatched_cost 9223372036854775807\n\
                 a 0 0 4611686018427387904\na 1 1 4611686018427387904\n";
    assert!(refusal(costs).contains("too large"), "{}", refusal(costs));
    assert!(refusal([0xff, 0xfe, 0, 7]).starts_with("window.asn:1:"));
}

#[test]
fn a_header_alone_takes_no_memory_for_its_edges() {
    let header = "p asn 10000000 10000000 4000000000\nc unmatched_cost 1\na 0 0 1\n";
    assert!(refusal(header).ends_with("1 edges, but the `p` line declares 4000000000"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_written_is_read_back(graph in graphs(Shape::Small), buffer in 1..200_usize) {
        let mut text = Vec::new();
        match asn::write(&graph, &mut text) {
            Ok(()) => {
                let input = BufReader::with_capacity(buffer, text.as_slice());
                prop_assert_eq!(asn::read(input, "x").expect("just written"), graph);
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
                let costs = graph.unmatched_costs();
                prop_assert!(costs.iter().any(|&cost| cost != costs[0]));
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), buffer in 1..64_usize) {
        let _ = asn::read(BufReader::with_capacity(buffer, bytes.as_slice()), "x");
    }

    #[test]
    fn any_likely_text_is_read_or_refused(
        lines in prop::collection::vec("(p asn|a|c|c unmatched_cost|)( -?[0-9]{1,2}){0,4}\r?", 0..12),
        buffer in 1..64_usize,
    ) {
        let text = lines.join("\n");
        let split = asn::read(BufReader::with_capacity(buffer, text.as_bytes()), "x");
        let whole: Result<Graph, _> = asn::read(text.as_bytes(), "x");
        prop_assert_eq!(split.map_err(|e| e.to_string()), whole.map_err(|e| e.to_string()));
    }
}

/// A reader that fails half-way.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("cable cut"))
    }
}

#[test]
fn a_failing_reader_is_reported() {
    let input = BufReader::new("p asn 1 1 0\n".as_bytes().chain(Broken));
    let refused = asn::read(input, "window.asn").expect_err("must be refused");
    assert_eq!(refused.to_string(), "window.asn: cable cut");
}
