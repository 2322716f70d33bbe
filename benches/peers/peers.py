"""The peers: how each is fed, and what it answers.

A peer is a function of an instance that gives three more: `convert()` builds its input, `solve(input)`
is the call that is timed, `read(answer)` gives driver_of (-1: unmatched). The cost of leaving a
request unmatched goes in as each solver likes it best; no peer gets dummies it does not need.

    python peers.py PEER FILE REPS     one line of JSON a solve, the first a warm-up
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from instances import Instance

SOLVERS = {}


def peer(function):
    SOLVERS[function.__name__] = function
    return function


def lapx():
    """lapx installs a module `lap`, as lap does; it has a folder of its own beside it."""
    sys.path.insert(0, os.environ["KHEYA_PEERS_LAPX"])
    import lap

    return lap


# sparse


def from_pairs(size, requests, drivers):
    driver_of = np.full(size, -1)
    driver_of[requests] = drivers
    return driver_of


def scipy_sparse_rows(instance, rows, columns, sides, read):
    """Full matching of `rows`, each with a dummy column of its own at the unmatched cost."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    height, width = sides

    def convert():
        if instance.complete:
            return csr_array((instance.cost.astype(float), (rows, columns)), shape=sides)
        own = np.arange(height)
        cost = np.concatenate([instance.cost, np.full(height, instance.unmatched)]).astype(float)
        places = (np.concatenate([rows, own]), np.concatenate([columns, width + own]))
        return csr_array((cost, places), shape=(height, width + height))

    def real(answer):
        a, b = answer
        return read(a[b < width], b[b < width])

    return convert, min_weight_full_bipartite_matching, real


@peer
def scipy_sparse(instance):
    sides = (instance.requests, instance.drivers)
    read = lambda a, b: from_pairs(instance.requests, a, b)
    return scipy_sparse_rows(instance, instance.row, instance.column, sides, read)


@peer
def scipy_sparse_by_driver(instance):
    """The drivers as rows: leaving a driver free at U differs by the constant U (R − D)."""
    sides = (instance.drivers, instance.requests)
    read = lambda a, b: from_pairs(instance.requests, b, a)
    return scipy_sparse_rows(instance, instance.column, instance.row, sides, read)


@peer
def ortools_min_cost_flow(instance):
    from ortools.graph.python import min_cost_flow

    def convert():
        flow = min_cost_flow.SimpleMinCostFlow()
        r, d = instance.requests, instance.drivers
        riders, cars, sink = np.arange(r), r + np.arange(d), r + d
        flow.add_arcs_with_capacity_and_unit_cost(
            np.concatenate([instance.row, riders, cars]),
            np.concatenate([r + instance.column, np.full(r + d, sink)]),
            np.ones(instance.edges + r + d, np.int64),
            np.concatenate([instance.cost, np.full(r, instance.unmatched), np.zeros(d, np.int64)]),
        )
        flow.set_nodes_supplies(np.append(riders, sink), np.append(np.ones(r, np.int64), -r))
        return flow

    def solve(flow):
        assert flow.solve() == flow.OPTIMAL
        return flow

    def read(flow):
        used = np.flatnonzero(flow.flows(np.arange(instance.edges)))
        return from_pairs(instance.requests, instance.row[used], instance.column[used])

    return convert, solve, read


def square_arcs(instance):
    """The same problem as a perfect matching of R + D a side: a request may take a dummy of its own
    at U, a driver its own column or the dummy of one of its requests at 0."""
    if instance.complete and instance.requests == instance.drivers:
        return instance.requests, instance.row, instance.column, instance.cost
    r, d = instance.requests, instance.drivers
    riders, cars = np.arange(r), np.arange(d)
    row = np.concatenate([instance.row, riders, r + cars, r + instance.column])
    column = np.concatenate([instance.column, d + riders, cars, d + instance.row])
    zeros = np.zeros(d + instance.edges, np.int64)
    return r + d, row, column, np.concatenate([instance.cost, np.full(r, instance.unmatched), zeros])


@peer
def ortools_assignment(instance):
    from ortools.graph.python import linear_sum_assignment

    def convert():
        solver = linear_sum_assignment.SimpleLinearSumAssignment()
        _, row, column, cost = square_arcs(instance)
        solver.add_arcs_with_cost(row, column, cost)
        return solver

    def solve(solver):
        assert solver.solve() == solver.OPTIMAL
        return solver

    def read(solver):
        mate = np.array([solver.right_mate(i) for i in range(instance.requests)], np.int64)
        return np.where(mate < instance.drivers, mate, -1)

    return convert, solve, read


def lapmod(instance, lap):
    def convert():
        n, row, column, cost = square_arcs(instance)
        order = np.lexsort((column, row))
        starts = np.zeros(n + 1, np.int32)
        np.cumsum(np.bincount(row, minlength=n), out=starts[1:])
        # it refuses costs of a million: halving is exact
        scale = 1.0
        while cost.max(initial=0) * scale >= 1e6:
            scale /= 2
        return n, (cost * scale)[order], starts, column[order].astype(np.int32)

    read = lambda answer: np.where(answer[0] < instance.drivers, answer[0], -1)[: instance.requests]
    return convert, lambda arrays: lap.lapmod(*arrays, return_cost=False), read


@peer
def lap_lapmod(instance):
    import lap

    return lapmod(instance, lap)


@peer
def lapx_lapmod(instance):
    return lapmod(instance, lapx())


@peer
def highs_lp(instance):
    import highspy

    def convert():
        lp = highspy.HighsLp()
        rows = instance.requests + instance.drivers
        lp.num_col_, lp.num_row_ = instance.edges, rows
        lp.col_cost_ = (instance.cost - instance.unmatched).astype(float)
        lp.col_lower_, lp.col_upper_ = np.zeros(instance.edges), np.ones(instance.edges)
        lp.row_lower_, lp.row_upper_ = np.full(rows, -highspy.kHighsInf), np.ones(rows)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.arange(0, 2 * instance.edges + 1, 2, dtype=np.int32)
        ends = np.stack([instance.row, instance.requests + instance.column], axis=1)
        lp.a_matrix_.index_ = ends.astype(np.int32).ravel()
        lp.a_matrix_.value_ = np.ones(2 * instance.edges)
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.passModel(lp)
        return solver

    def solve(solver):
        solver.run()
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return solver

    def read(solver):
        used = np.flatnonzero(np.asarray(solver.getSolution().col_value) > 0.5)
        return from_pairs(instance.requests, instance.row[used], instance.column[used])

    return convert, solve, read


# dense


def square_matrix(instance):
    """max(R, D) a side: pairs without an edge at U, surplus rows at 0."""
    side = max(instance.requests, instance.drivers)
    matrix = np.full((side, side), float(instance.unmatched))
    matrix[instance.requests :] = 0.0
    matrix[instance.row, instance.column] = instance.cost
    return matrix


def edges_only(instance, columns):
    columns = np.asarray(columns[: instance.requests], np.int64)
    at = instance.edge_at(np.arange(instance.requests), np.minimum(columns, instance.drivers - 1))
    return np.where((columns >= 0) & (columns < instance.drivers) & (at >= 0), columns, -1)


@peer
def scipy_dense(instance):
    from scipy.optimize import linear_sum_assignment

    def convert():
        gains = np.zeros((instance.requests, instance.drivers))
        gains[instance.row, instance.column] = instance.cost - instance.unmatched
        return gains

    read = lambda answer: edges_only(instance, from_pairs(instance.requests, *answer))
    return convert, linear_sum_assignment, read


def square(instance, solve):
    return lambda: square_matrix(instance), solve, lambda answer: edges_only(instance, answer[0])


@peer
def lap_lapjv(instance):
    import lap

    return square(instance, lambda matrix: lap.lapjv(matrix, return_cost=False))


@peer
def lapx_lapjvs(instance):
    lap = lapx()
    options = dict(extend_cost=False, return_cost=False, jvx_like=False, prefer_float32=False)
    return square(instance, lambda matrix: lap.lapjvs(matrix, **options))


@peer
def lapjv(instance):
    from lapjv import lapjv as solve

    return square(instance, lambda matrix: solve(matrix, force_doubles=True))


DENSE = {"scipy_dense", "lap_lapjv", "lapx_lapjvs", "lapjv"}
LEMON = ["lemon_network_simplex", "lemon_cost_scaling", "lemon_capacity_scaling", "lemon_weighted_matching"]
ALL = LEMON + list(SOLVERS)


def dense_bytes(name, requests, drivers):
    """Memory of a dense peer's matrix and its copy."""
    return 16 * max(requests, drivers) ** 2 if name in DENSE else 0


def main(name, path, reps):
    instance = Instance(Path(path))
    convert, solve, read = SOLVERS[name](instance)
    for _ in range(int(reps) + 1):
        started = time.perf_counter()
        fed = convert()
        converted = time.perf_counter()
        answer = solve(fed)
        solved = time.perf_counter()
        objective = instance.objective(read(answer))
        sample = {
            "convert_ms": 1e3 * (converted - started),
            "solve_ms": 1e3 * (solved - converted),
            "objective": objective,
        }
        print(json.dumps(sample), flush=True)
        del fed, answer


if __name__ == "__main__":
    main(*sys.argv[1:])
