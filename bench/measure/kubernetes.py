"""Pods against their nodes where the truth is known, and how exactly agents start that are entered by exec."""

import json
import os
import subprocess
import sys
from pathlib import Path

from common import EFFICIENCY, HERE, CouldNotRun, Table, binary, machine, main, met, note, setting

sys.path.insert(0, str(HERE.parent.parent / "tests" / "kubernetes"))
from harness import IMAGE, SERVER_LIMIT, TWO_PATHS, cluster_up, why_not_here  # noqa: E402

PARTS = ("routed", "limit", "vxlan", "link")
NIC_BITS_PER_SEC = 200e6
NODE_CEILING = NIC_BITS_PER_SEC * EFFICIENCY
# 50 bytes of VXLAN, and of every inner packet 52 bytes of headers; the frame is as long as without.
VXLAN_CEILING = NIC_BITS_PER_SEC * 1398 / 1514
BAR = 0.015
ROUNDS = ("--set", "duration=300ms", "--set", "warm-up=100ms", "--set", "gap=100ms")


def measure(work):
    reason = why_not_here()
    if reason:
        raise CouldNotRun(f"no Kubernetes can be built here: {reason}")
    print(machine())
    runs = setting("BENCH_RUNS", 10)
    parts = os.environ.get("BENCH_PARTS", ",".join(PARTS)).split(",")
    with cluster_up(binary()) as cluster:
        (cluster.work / "two-paths.yaml").write_text(TWO_PATHS.replace("samples: 6", "samples: 10"))
        if "routed" in parts:
            series("Routed pods", runs, lambda: compared(cluster), routed_bars)
        if "limit" in parts:
            series("Pods whose server has a CPU limit", runs, lambda: compared(cluster, *SERVER_LIMIT), limit_bars)
        if "vxlan" in parts:
            cluster.call("network", "vxlan")
            series("Pods over VXLAN, MTU 1450", runs, lambda: compared(cluster), vxlan_bars)
            cluster.call("network", "routed")
        if "link" in parts:
            links(work, cluster)


def series(title, runs, one, bars):
    """The same run again and again; every bar is held against each."""
    found = []
    for number in range(1, runs + 1):
        found.append(one())
        note(f"{title}, run {number} of {runs}: {found[-1]['sentence'] if found[-1] else 'no comparison'}")
    table = Table(f"{title}: {runs} runs", "claim", "figures", "runs", "bar", "")
    for claim, figure, holds in bars:
        known = [one for one in found if one]
        count = sum(holds(one) for one in known)
        figures = [figure(one) for one in known]
        words = f"{min(figures):.1f} to {max(figures):.1f}" if figures else "-"
        table.add(claim, words, f"{count} of {runs}", f"{runs} of {runs}", met(count == runs))
    table.show()


def compared(cluster, *words):
    """The comparison of a run, or None when it has none."""
    done = cluster.run("two-paths.yaml", *words)
    pods = done.result.get("pods", [])
    if not pods:
        note(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return pods[0] if pods else None


def within(value, truth):
    return abs(value / truth - 1) <= BAR


def below_percent(one):
    return (1 - one["ratio"]["value"]) * 100


def cause(one, kind):
    return next((found for found in one["causes"] if found["kind"] == kind), None)


def is_encapsulation(one):
    found = cause(one, "encapsulation")
    return found is not None and found["share"] is not None and "VXLAN" in found["words"]


def is_throttled(one):
    found = cause(one, "cpu-limit")
    named = [evidence["text"].partition(":")[0] for evidence in found["evidence"]] if found else []
    return one["significant"] and named == ["pod n2/pod"]


def node_rate(one):
    return one["baseline"]["value"] / 1e6


def pod_rate(one):
    return one["figure"]["value"] / 1e6


def nodes_bar():
    claim = f"nodes within 1.5% of {NODE_CEILING / 1e6:.1f} Mb/s"
    return (claim, node_rate, lambda one: within(one["baseline"]["value"], NODE_CEILING))


routed_bars = [
    nodes_bar(),
    (f"pods within 1.5% of {NODE_CEILING / 1e6:.1f} Mb/s", pod_rate, lambda one: within(one["figure"]["value"], NODE_CEILING)),
    ("no difference claimed (percent below)", below_percent, lambda one: not one["significant"]),
]
vxlan_bars = [
    nodes_bar(),
    (f"pods within 1.5% of {VXLAN_CEILING / 1e6:.1f} Mb/s", pod_rate, lambda one: within(one["figure"]["value"], VXLAN_CEILING)),
    ("encapsulation named with its share (percent below)", below_percent, is_encapsulation),
]
limit_bars = [
    ("40 to 75% below the nodes' rate of requests", below_percent, lambda one: 0.25 <= one["ratio"]["value"] <= 0.6),
    ("throttling named with exactly that pod (percent below)", below_percent, is_throttled),
]


# --- the link -----------------------------------------------------------------------------------------------------------------------


def links(work, cluster):
    """Rounds of the same plan by both links, a run of each in turns."""
    rounds = setting("BENCH_LINK_ROUNDS", 50)
    plan = (*ROUNDS, "--set", f"samples={rounds}")
    found = {"exec": [], "ssh": []}
    with over_ssh(work) as by_ssh:
        for _ in range(setting("BENCH_LINK_RUNS", 3)):
            found["exec"].append(cluster.run("pair", "--host-network", *plan).result)
            found["ssh"].append(by_ssh(*plan))
    table = Table("Links", "link", "rounds", "start skew, median", "99th percentile", "max", "clock error, max")
    for name, results in found.items():
        table.add(name, *link_figures(results))
    table.show()


def link_figures(results):
    stages = [stage for result in results for stage in result["stages"] if stage["start_skew_ns"]]
    if not stages:
        raise CouldNotRun("no run has a start skew")
    skew = [max(stage["start_skew_ns"][place] for stage in stages) for place in range(3)]
    errors = [host["clock_error_ns"] for result in results for host in result["hosts"] if host["clock_error_ns"] is not None]
    flows = sum(stage["flows"] for stage in stages)
    return [str(flows), *(f"{ns / 1e6:.2f} ms" for ns in skew), f"{max(errors) / 1e3:.0f} µs"]


class over_ssh:
    """A lab of two hosts with NICs of the same rate and a real sshd on each; gives what runs in it."""

    def __init__(self, work):
        self.work = work
        self.name = f"bk{os.getpid()}"

    def __enter__(self):
        file = self.work.dir / f"{self.name}.yaml"
        file.write_text(f"name: {self.name}\nracks: 1\nhosts-per-rack: 2\nnic: 200M\nsshd: true\n")
        up = subprocess.run([binary(), "lab", "up", "-f", file], capture_output=True, text=True)
        if up.returncode:
            raise CouldNotRun(f"lab up: {up.stderr.strip()}")
        return self.run

    def run(self, *words):
        config = Path("/run/eastwest/labs") / self.name / "ssh_config"
        inner = [binary(), "run", "pair", "--ssh-config", config, "--hosts", "r1h1,r1h2", "--format", "json", "--quiet"]
        command = [binary(), "lab", "exec", "--lab", self.name, "controller", "--", *inner, "--runs-dir", self.work.dir / "runs", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if not done.stdout.strip():
            raise CouldNotRun(f"run over ssh: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def __exit__(self, *_):
        subprocess.run([binary(), "lab", "down", "--lab", self.name], capture_output=True)


main(measure)
