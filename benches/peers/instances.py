"""Seeded instances of the families that dispatch and the literature meet.

Everything is drawn from numpy's PCG64 with the name's own numbers as seed, so a name means the same
instance on every machine (up to the last bit of the platform's exp and cos).

    geo-RxD-sS    requests and cars round the hot spots of a city, each request with its 30 nearest cars
                  within 7 km; cost: a noisy pickup ETA in tenths of a second
    rand-NxK-sS   N requests, N drivers, K random drivers a request and one that makes all servable;
                  costs even in 1..10^6
    dense-N-sS    every pair of N requests and N drivers; costs even in 1..10^6

Leaving a request unmatched costs twice the dearest edge.
"""

import re

import numpy as np

NEAREST, REACH_M = 30, 7_000.0
DETOUR = 1.3
SPEED_CENTRE, SPEED_RIM = 5.5, 9.7  # metres a second

SMALL = [f"geo-{size}-s{seed}" for size in ("60x25", "50x100", "200x400") for seed in (1, 2, 3)]
MIDDLE = [f"geo-{size}-s{seed}" for size in ("1000x1000", "2000x800", "1000x2000") for seed in (1, 2, 3)]
LARGE = [f"geo-{size}-s{seed}" for size in ("5000x10000", "20000x8000", "20000x40000") for seed in (1, 2)]
CLASSIC = ["rand-10000x30-s1", "rand-10000x30-s2", "dense-500-s1", "dense-1000-s1", "dense-2000-s1"]
SETS = {"small": SMALL, "middle": SMALL + MIDDLE, "all": SMALL + MIDDLE + LARGE + CLASSIC}


def make(name):
    """The instance of a name: requests, drivers, unmatched cost, and the edges as three arrays."""
    if found := re.fullmatch(r"geo-(\d+)x(\d+)-s(\d+)", name):
        requests, drivers, edges = geometric(*map(int, found.groups()))
    elif found := re.fullmatch(r"rand-(\d+)x(\d+)-s(\d+)", name):
        requests, drivers, edges = random_sparse(*map(int, found.groups()))
    elif found := re.fullmatch(r"dense-(\d+)-s(\d+)", name):
        requests, drivers, edges = dense(*map(int, found.groups()))
    else:
        raise ValueError(f"{name}: no geo-RxD-sS, rand-NxK-sS or dense-N-sS")
    return requests, drivers, 2 * int(edges[2].max(initial=1)), edges


def geometric(requests, drivers, seed):
    from scipy.spatial import KDTree

    chance = np.random.default_rng([1, requests, drivers, seed])
    # a city grows with its traffic: about 25 cars and riders on a square kilometre of radius² · π
    radius = 300.0 * np.sqrt(requests + drivers) + 4_000.0
    spots = 4 + int(np.sqrt(requests + drivers) / 8)
    centres = scattered(chance, spots, 0.8 * radius)
    spread = chance.uniform(400.0, 2_400.0, spots)
    share = chance.dirichlet(np.ones(spots))
    # cars gather where the last riders got out, which is only half where the next ones stand
    car_share = (share + chance.dirichlet(np.ones(spots))) / 2
    riders = people(chance, requests, radius, centres, spread, share, 0.15)
    cars = people(chance, drivers, radius, centres + chance.normal(0, 350.0, centres.shape), spread, car_share, 0.2)

    nearest = min(NEAREST, drivers)
    metres, found = KDTree(cars).query(riders, k=nearest)
    metres, found = metres.reshape(requests, nearest), found.reshape(requests, nearest)
    row, place = np.nonzero(metres <= REACH_M)
    metres, column = metres[row, place], found[row, place]
    # the nearer to the middle of the city, the slower
    off_centre = np.clip(np.linalg.norm(riders[row], axis=1) / radius, 0, 1)
    speed = SPEED_CENTRE + (SPEED_RIM - SPEED_CENTRE) * off_centre
    seconds = metres * DETOUR / speed * np.exp(chance.normal(0, 0.12, len(row))) + chance.uniform(0, 30, len(row))
    return requests, drivers, (row, column, np.maximum(1, np.rint(10 * seconds)).astype(np.int64))


def scattered(chance, count, radius):
    """Places spread evenly over a disc."""
    angle, off = chance.uniform(0, 2 * np.pi, count), radius * np.sqrt(chance.random(count))
    return np.stack([off * np.cos(angle), off * np.sin(angle)], axis=1)


def people(chance, count, radius, centres, spread, share, anywhere):
    spot = chance.choice(len(centres), count, p=share)
    round_spot = centres[spot] + chance.normal(0, 1, (count, 2)) * spread[spot, None]
    even = chance.random(count) < anywhere
    return np.where(even[:, None], scattered(chance, count, radius), round_spot)


def random_sparse(n, degree, seed):
    chance = np.random.default_rng([2, n, degree, seed])
    pairs = np.repeat(np.arange(n), degree) * n + chance.integers(0, n, n * degree)
    pairs = np.unique(np.concatenate([pairs, np.arange(n) * n + chance.permutation(n)]))
    return n, n, (pairs // n, pairs % n, chance.integers(1, 10**6, len(pairs), endpoint=True))


def dense(n, seed):
    chance = np.random.default_rng([3, n, seed])
    row, column = np.divmod(np.arange(n * n), n)
    return n, n, (row, column, chance.integers(1, 10**6, n * n, endpoint=True))


def write(path, name):
    requests, drivers, unmatched, (row, column, cost) = make(name)
    order = np.lexsort((column, row))
    partial = path.with_suffix(".partial")
    with open(partial, "w") as file:
        file.write(f"p asn {requests} {drivers} {len(row)}\nc unmatched_cost {unmatched}\n")
        lines = zip(row[order].tolist(), column[order].tolist(), cost[order].tolist())
        file.writelines(f"a {i} {j} {c}\n" for i, j, c in lines)
    partial.rename(path)


class Instance:
    """An `.asn` file as arrays: edges by (request, driver), a pair once at its cheapest."""

    def __init__(self, path):
        text = open(path, "rb").read()
        header = re.match(rb"p asn (\d+) (\d+) (\d+)\s", text)
        unmatched = re.search(rb"(?m)^c unmatched_cost (-?\d+)\s", text)
        self.requests, self.drivers, _ = map(int, header.groups())
        self.unmatched = int(unmatched.group(1))
        body = re.sub(rb"(?m)^[cp] .*$", b"", text).replace(b"a ", b"")
        row, column, cost = np.fromstring(body, dtype=np.int64, sep=" ").reshape(-1, 3).T
        order = np.lexsort((cost, column, row))
        key = (row * self.drivers + column)[order]
        order = order[np.concatenate([[True], key[1:] != key[:-1]])] if len(key) else order
        self.row, self.column, self.cost = (np.ascontiguousarray(a[order]) for a in (row, column, cost))
        self.key = self.row * self.drivers + self.column
        self.edges = len(self.row)
        # complete, and no more requests than drivers: nobody need stay unmatched
        self.complete = self.edges == self.requests * self.drivers and self.requests <= self.drivers

    def objective(self, driver_of):
        """The cost of a matching, driver_of[request] = driver or -1; refuses what is none."""
        matched = np.flatnonzero(driver_of >= 0)
        chosen = driver_of[matched]
        if len(np.unique(chosen)) != len(chosen):
            raise ValueError("a driver is used twice")
        at = self.edge_at(matched, chosen)
        if (at < 0).any():
            raise ValueError("a pair is no edge")
        return int(self.cost[at].sum()) + self.unmatched * (self.requests - len(matched))

    def edge_at(self, requests, drivers):
        """The place of each pair's edge, -1 where there is none."""
        wanted = requests * self.drivers + drivers
        at = np.minimum(np.searchsorted(self.key, wanted), max(self.edges - 1, 0))
        return np.where(self.key[at] == wanted, at, -1) if self.edges else np.full(len(wanted), -1)
