"""Times `kheya solve` beside the solvers that one would pick otherwise, and checks that all agree.

Called by `benches/peers/run`, which sets up what it needs. On every instance our solves and a peer's
take turns, so that whatever else the machine does falls on both; of every solver the least time
counts. A peer's time is its solver call alone: building its input stands apart as `convert`. Ours is
`solve_ms_min` of `kheya solve --threads 1`: from the parsed graph to matching and prices.
"""

import argparse
import fnmatch
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import instances
import peers

HERE = Path(__file__).resolve().parent
DENSE_LIMIT_BYTES = 4 << 30


def arguments():
    parser = argparse.ArgumentParser(prog="benches/peers/run", description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="small", choices=instances.SETS, help="which instances to make (small)")
    parser.add_argument("--instances", type=Path, help="a folder of .asn files instead")
    parser.add_argument("--only", default="*", metavar="GLOB", help="instances by name")
    parser.add_argument("--peers", default=",".join(peers.ALL), help="comma-separated; all by default")
    parser.add_argument("--reps", type=int, default=5, help="solves a turn, after a warm-up (5)")
    parser.add_argument("--turns", type=int, default=2, help="turns of every peer (2)")
    parser.add_argument("--timeout", type=float, default=60, metavar="S", help="longest turn of a peer (60)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every figure to a file")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    if unknown := sorted(set(options.peers) - set(peers.ALL)):
        parser.error(f"no peer {', '.join(unknown)}; there are {', '.join(peers.ALL)}")
    if options.reps < 1 or options.turns < 1:
        parser.error("--reps and --turns are at least 1")
    return options


def files(options):
    if options.instances:
        found = sorted(options.instances.glob("*.asn"))
        return [path for path in found if fnmatch.fnmatch(path.stem, options.only)]
    folder = Path(os.environ["KHEYA_PEERS_DIR"]) / "instances"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in instances.SETS[options.set] if fnmatch.fnmatch(name, options.only)]
    for name in wanted:
        if not (folder / f"{name}.asn").exists():
            print(f"making {name}", file=sys.stderr)
            instances.write(folder / f"{name}.asn", name)
    return [folder / f"{name}.asn" for name in wanted]


def ours(path, reps):
    command = [os.environ["KHEYA"], "solve", path, "--threads", "1", "--format", "json"]
    run = subprocess.run([*command, "--repeat", str(reps + 1)], capture_output=True, text=True, check=True)
    told = json.loads(run.stdout)
    if told["status"] not in ("optimal", "empty"):
        raise RuntimeError(f"{path}: ours is {told['status']}")
    return told


def turn(peer, path, reps, timeout):
    """One turn of a peer: its samples without the warm-up, or why there are none."""
    if peer in peers.LEMON:
        command = [os.environ["KHEYA_PEERS_LEMON"], peer, path, str(reps)]
    else:
        command = [sys.executable, HERE / "peers.py", peer, path, str(reps)]
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=os.environ | one_thread)
        text, failure = run.stdout, run.stderr.strip().splitlines()[-1:] if run.returncode else []
    except subprocess.TimeoutExpired as over:
        text, failure = (over.stdout or b"").decode(), [f"over {timeout:.0f} s"]
    except OSError as error:
        text, failure = "", [str(error)]
    samples = [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    if not samples:
        return [], (failure or ["no answer"])[0][:100]
    return samples[1:] or samples, None


def measure(path, options):
    requests, drivers, edges = map(int, open(path).readline().split()[2:5])
    row = {
        "instance": path.stem,
        "class": kind(path.stem, requests, drivers, edges),
        "requests": requests,
        "drivers": drivers,
        "edges": edges,
        "peers": {},
        "failed": {},
    }
    our_turns = []
    for _ in range(options.turns):
        for peer in options.peers:
            if peer in row["failed"]:
                continue
            if peers.dense_bytes(peer, requests, drivers) > DENSE_LIMIT_BYTES:
                row["failed"][peer] = "its matrix does not fit"
                continue
            our_turns.append(ours(path, options.reps))
            samples, failure = turn(peer, path, options.reps, options.timeout)
            if failure:
                row["failed"][peer] = failure
            row["peers"].setdefault(peer, []).extend(samples)
    our_turns.append(ours(path, options.reps))
    row["solve_ms"] = min(told["solve_ms_min"] for told in our_turns)
    row["build_ms"] = min(told["build_ms"] for told in our_turns)
    row["objective"] = our_turns[0]["objective"]
    row["disagree"] = sorted(
        f"{peer}: {sample['objective']}"
        for peer, samples in row["peers"].items()
        for sample in samples[:1]
        if any(sample["objective"] != row["objective"] for sample in samples)
    )
    least = lambda samples, key: min(sample[key] for sample in samples)
    row["peers"] = {
        peer: {key: least(samples, key) for key in ("solve_ms", "convert_ms")}
        for peer, samples in row["peers"].items()
        if samples
    }
    return row


def kind(name, requests, drivers, edges):
    """The class that an instance is counted in."""
    if edges == requests * drivers and name.startswith("dense"):
        return "dense"
    if name.startswith("rand"):
        return "random"
    if requests > 1.2 * drivers:
        return "short of cars"
    return "cars to spare" if drivers > 1.2 * requests else "balanced"


def report(rows):
    for row in rows:
        row["best"] = min(row["peers"], key=lambda peer: row["peers"][peer]["solve_ms"], default=None)
        if row["best"]:
            row["ratio"] = row["peers"][row["best"]]["solve_ms"] / row["solve_ms"]
    print("\n| instance | edges | ours ms | best peer | its ms (convert) | peer / ours |\n|---|---|---|---|---|---|")
    for row in rows:
        if not row["best"]:
            print(f"| {row['instance']} | {row['edges']} | {row['solve_ms']:.3f} | none | | |")
            continue
        best = row["peers"][row["best"]]
        times = f"{row['solve_ms']:.3f} | {row['best']} | {best['solve_ms']:.3f} ({best['convert_ms']:.3f})"
        print(f"| {row['instance']} | {row['edges']} | {times} | {row['ratio']:.2f} |")
    classes = {}
    for row in rows:
        if row["best"]:
            classes.setdefault(row["class"], []).append(row["ratio"])
    print("\n| class | instances | peer / ours, geometric mean | least |\n|---|---|---|---|")
    for name, ratios in classes.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"| {name} | {len(ratios)} | {mean:.2f} | {min(ratios):.2f} |")
    print("\nLeast solve times; above 1 ours is faster. Every peer:\n")
    for row in rows:
        ranked = sorted(row["peers"].items(), key=lambda item: item[1]["solve_ms"])
        told = [f"{peer} {times['solve_ms'] / row['solve_ms']:.2f}" for peer, times in ranked]
        told += [f"{peer}: {why}" for peer, why in row["failed"].items()]
        print(f"{row['instance']}: {', '.join(told)}")


def main():
    options = arguments()
    paths = files(options)
    if not paths:
        sys.exit("benches/peers/run: no instance has such a name")
    rows = []
    for path in paths:
        print(f"timing {path.stem}", file=sys.stderr)
        rows.append(measure(path, options))
    report(rows)
    if options.json:
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
        options.json.write_text(json.dumps({**machine, "reps": options.reps, "rows": rows}, indent=1) + "\n")
    if wrong := [f"{row['instance']}: ours {row['objective']}, {told}" for row in rows for told in row["disagree"]]:
        sys.exit("objectives differ:\n" + "\n".join(wrong))
    print("\nevery peer found our objective on every instance it solved")


if __name__ == "__main__":
    main()
