"""The fault suite: labs with one known fault each, drawn from a seed, against what `eastwest run` says of them.

Prints a confusion matrix and holds it against bars. `--axes` chooses the networks: `pipes`, one pipe a rack, `fabrics`, with hashed paths, FIFO
queues, NIC classes, unequal racks, LAG and pods (fabric_kinds.py), or `any-shape`, drawn as widely as the machine carries them and judged by
`qualify` as it is (any_shape.py; about 100 s each, so only where asked for). A seed gives the same lab, fault and plan every time. Seeds
1 to 999 are for the printed table, those from 1000 on for whoever writes rules: a table of seeds that rules were tuned with
proves nothing.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from any_shape import ANY_FAULTY, ANY_HEALTHY
from bounds import in_words
from common import HERE, CouldNotRun, Finished, Table, call, machine, main, median, met, note, setting
from corpus import pack
from fabric_kinds import FABRICS, FACTS, FAULTY, HEALTHY, PathFault
from fault_kinds import CLEAN, HOG, KINDS, TWO, Fault, Finding, Shape, draw_faults

SHAPES = [(2, 3), (2, 4), (3, 3)]
AXES = {
    "pipes": ([*KINDS, TWO], [CLEAN]),
    "fabrics": (list(FAULTY), list(HEALTHY)),
    "any-shape": (list(ANY_FAULTY), list(ANY_HEALTHY)),
}
AXES["all"] = tuple(AXES["pipes"][which] + AXES["fabrics"][which] for which in (0, 1))
ALL_KINDS = [*KINDS, TWO, *FAULTY, *ANY_FAULTY]
CLEAN_KINDS = [CLEAN, *HEALTHY, *ANY_HEALTHY]
# Kinds that draw their own network, with the scenario that asks it.
NETWORKS = {**FABRICS, **ANY_FAULTY, **ANY_HEALTHY}
SCENARIOS = {**dict.fromkeys(FABRICS, HERE / "fabric.yaml"), **dict.fromkeys([*ANY_FAULTY, *ANY_HEALTHY], "qualify")}

RIGHT_BAR = 0.95
FALSE_ALARM_BAR = 0.02
FIRST_TUNING_SEED = 1000

# Lies next to the files of a kept run.
TRUTH = "truth.json"

# Findings that accuse nobody: what is worth knowing, and that flows could not be measured, which is counted separately.
SILENT = "info"
UNMEASURED = {"cells-missing", "measurement-quality"}

# Hosts of a lab share the machine's disks, so that what keeps one busy may be reported for any of them.
DISK = "disk"


@dataclass
class Result:
    """One run: what was wrong, what was said, and where the run is kept when that was wrong."""

    seed: int
    kind: str
    faults: list[Fault]
    said: str = ""
    is_right: bool = False
    findings: list[Finding] = field(default_factory=list)
    sentence: str = ""
    unmeasured: bool = False
    kept: str = ""
    topology: dict | None = None
    wait_share: float | None = None

    def record(self):
        """What judging again needs."""
        faults = [{**asdict(fault), "causes": sorted(fault.causes)} for fault in self.faults]
        return {
            "seed": self.seed,
            "kind": self.kind,
            "healthy": self.kind in CLEAN_KINDS,
            "faults": faults,
            "engine_wait_share": self.wait_share,
            "topology": self.topology,
        }

    def truth(self):
        return ", ".join(f"{fault.target} {fault.size}" for fault in self.faults) or "nothing"


def measure(work):
    arguments = parse()
    results = judge_again(Path(arguments.again)) if arguments.again else run_all(work, arguments)
    show_matrix(results)
    show_wrong(results)
    show_bars(results)


def run_all(work, arguments):
    runs = plan_of(arguments)
    print(machine())
    needs_cores = any(kind not in NETWORKS for _, kind in runs)
    rates = (nic_mbit(), nic_mbit_beside_hog()) if needs_cores else ()
    cores = {rate: healthy_cores(work, rate) for rate in rates}
    for rate, used in cores.items():
        print(f"A host with a NIC of {rate} Mb/s uses {100 * used:.1f}% of a core here under full load, both directions")
    results = []
    for seed, kind in runs:
        result = run_once(work, seed, kind, cores, arguments)
        if result is not None:
            results.append(result)
    return results


def judge_again(kept):
    """What the binary of today says of runs that were kept."""
    truths = sorted(kept.glob(f"*/{TRUTH}"))
    if not truths:
        raise CouldNotRun(f"--again {kept}: no kept runs of this suite are there")
    results = []
    for path in truths:
        truth = json.loads(path.read_text())
        faults = [fault_of(truth["kind"], record) for record in truth["faults"]]
        result = Result(truth["seed"], truth["kind"], faults, kept=path.parent, topology=truth["topology"])
        report = call(["report", str(path.parent), "--format", "json"], 60)
        judge(result, Finished(json.loads(report.stdout), report.returncode, 0, path.parent))
        results.append(result)
    return results


def fault_of(kind, record):
    is_host = "h" in record["target"]
    made = Fault if is_host or kind not in NETWORKS else PathFault
    return made(**{**record, "causes": frozenset(record["causes"])})


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", metavar="A-B", help="runs with a fault, one a seed [1-100]")
    parser.add_argument("--clean", metavar="A-B", help="runs without one, or `none` [as many as with]")
    parser.add_argument("--axes", choices=sorted(AXES), default="all", help="networks to draw from [all]")
    parser.add_argument("--only", metavar="KIND", help=f"one kind: {', '.join([*ALL_KINDS, *CLEAN_KINDS])}")
    parser.add_argument("--tuning", action="store_true", help=f"seeds from {FIRST_TUNING_SEED} on, for work on rules")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="where runs are kept [a directory for temporary files]")
    parser.add_argument("--corpus", metavar="DIR", type=Path, help="pack every run for `make replay` into DIR, too")
    parser.add_argument("--again", metavar="DIR", help="judge kept runs again instead: DIR is the directory that was named")
    return parser.parse_args()


def plan_of(arguments):
    """(seed, kind) of every run. The kind of a seed is drawn from the seed as all else is, unless one is asked for."""
    first = FIRST_TUNING_SEED if arguments.tuning else 1
    faulty = seeds(arguments.seeds or f"{first}-{first + 99}")
    check_range(faulty, arguments.tuning)
    faulty_kinds, clean_kinds = AXES[arguments.axes]
    if arguments.only:
        if arguments.only not in [*ALL_KINDS, *CLEAN_KINDS]:
            raise CouldNotRun(f"--only {arguments.only}: the kinds are {', '.join([*ALL_KINDS, *CLEAN_KINDS])}")
        return [(seed, arguments.only) for seed in faulty]
    clean = faulty if arguments.clean is None else [] if arguments.clean == "none" else seeds(arguments.clean)
    check_range(clean, arguments.tuning)
    # Every kind comes equally often, in an order that says nothing about the kind.
    return [(seed, faulty_kinds[seed % len(faulty_kinds)]) for seed in faulty] + [
        (seed, clean_kinds[seed % len(clean_kinds)]) for seed in clean
    ]


def seeds(text):
    first, _, last = text.partition("-")
    if not first.isdigit() or not (last or first).isdigit():
        raise CouldNotRun(f"`{text}` is not a range of seeds; write it like 1-100")
    return list(range(int(first), int(last or first) + 1))


def check_range(chosen, is_tuning):
    if any((seed >= FIRST_TUNING_SEED) != is_tuning for seed in chosen):
        raise CouldNotRun(f"seeds from {FIRST_TUNING_SEED} on are for --tuning, and only those are")


def nic_mbit():
    """All hosts together must stay well within what the cores of this machine carry."""
    return setting("FAULTS_NIC_MBIT", 50)


def nic_mbit_beside_hog():
    """A hog has a core for itself, so that the others carry all other hosts."""
    cores = os.cpu_count() or 1
    return max(nic_mbit() * max(cores - 1, 1) // max(cores, 2), 1)


def healthy_cores(work, rate_mbit):
    """What the engine of a host without a fault uses while it sends and receives at its NIC's rate."""
    with work.lab(2, 3, rate_mbit) as lab:
        finished = lab.run(HERE / "faults.yaml", "--set", "duration=1s")
    ends = [record["receiver"] for record in finished.records() if record["stage"] == 0 and record["receiver"]]
    used = [end["cpu"]["engine_ns"] / end["window_ns"] for end in ends if end["cpu"]]
    if not used:
        raise CouldNotRun("this machine does not report the CPU time of threads")
    return median(used)


def run_once(work, seed, kind, cores, arguments):
    """One lab, one run, one judgement. `None` where this machine cannot make the fault."""
    dice, lab, faults, hogs, expects = draw(work, seed, kind, cores)
    result = Result(seed, kind, faults)
    plan_seed = dice.randint(1, 2**31)
    scenario = SCENARIOS.get(kind, HERE / "faults.yaml")
    try:
        with Hogs(hogs):
            more = ["--seed", str(plan_seed), *expects]
            finished = run_lab(lab, scenario, more, result) or run_lab(lab, scenario, more, result)
    except CannotCarry as reason:
        note(f"skipped: {kind}, seed {seed}: {reason}")
        return None
    if finished is None:
        # A run without an answer is a wrong one; the others go on.
        result.said = result.sentence = "no answer"
        return result
    result.wait_share = wait_share(finished)
    judge(result, finished)
    # Right runs are kept, too: what a later analysis says of them is not known yet.
    result.kept = work.keep(finished, arguments.keep)
    (result.kept / TRUTH).write_text(json.dumps(result.record()))
    if arguments.corpus:
        pack(result.kept, result.record(), arguments.corpus)
    answer = "right" if result.is_right else f"WRONG, said {result.said}"
    starved = f"engine waited {100 * (result.wait_share or 0):.0f}% for CPU"
    note(f"{kind}, seed {seed}, {lab.title}, {result.truth()}: {answer}; {starved}; {finished.wall_s:.0f} s")
    return result


def draw(work, seed, kind, cores):
    """What is left of the dice, the lab, its faults, how many processes keep the machine busy meanwhile, and what to expect."""
    dice = random.Random(f"{kind}:{seed}")
    if kind in NETWORKS:
        network, faults = NETWORKS[kind](dice)
        return dice, work.fabric(network, lines_of(faults)), faults, network.hogs, network.expects
    rate = nic_mbit()
    faults = draw_pipes(dice, kind, rate, cores)[1]
    if any(fault.kind == HOG for fault in faults):
        # The same lab, with slower links.
        rate = nic_mbit_beside_hog()
    dice = random.Random(f"{kind}:{seed}")
    shape, faults = draw_pipes(dice, kind, rate, cores)
    return dice, work.lab(shape.racks, shape.hosts, shape.nic_mbit, 1, lines_of(faults)), faults, 0, ()


def draw_pipes(dice, kind, rate_mbit, cores):
    shape = Shape(*dice.choice(SHAPES), rate_mbit, cores[rate_mbit])
    return shape, draw_faults(kind, dice, shape)


def lines_of(faults):
    """As a lab file lists faults; those that the network's own numbers have are not in it."""
    return ", ".join(filter(None, (fault.lab_line() for fault in faults)))


class Hogs:
    """Processes that take CPU from everybody, for as long as the block lasts, and never longer than a run may take."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        busy = "import time\nend = time.monotonic() + 400\nwhile time.monotonic() < end: pass"
        self.all = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(self.count)]

    def __exit__(self, *_):
        for hog in self.all:
            hog.kill()
            hog.wait()


def wait_share(finished):
    """How much of a window the median flow's engine threads could have run and got no CPU, at the worse end."""
    shares = []
    for record in finished.records():
        ends = [end for end in (record["sender"], record["receiver"]) if end and end["cpu"]]
        waits = [end["cpu"]["engine_wait_ns"] / end["window_ns"] for end in ends if end["window_ns"] and end["cpu"]["engine_wait_ns"] is not None]
        shares += [max(waits)] if waits else []
    return median(shares) if shares else None


class CannotCarry(Exception):
    """This machine or its kernel cannot make a fault."""


def run_lab(lab, scenario, arguments, result):
    """`None` without an answer: on a machine that is busy as a whole, agents may start too late."""
    try:
        with lab:
            result.topology = lab.topology()
            return lab.run(scenario, *arguments)
    except CouldNotRun as reason:
        first = str(reason).splitlines()[0]
        if "cannot carry the lab" in first:
            raise CannotCarry(first) from None
        note(f"no answer: {first}")
        return None


def judge(result, finished):
    """Right is: every fault is named, with the cause first that is the cause, and nobody else is accused."""
    result.sentence = finished.json["verdict"]["sentence"]
    every = findings_of(finished)
    result.unmeasured = any(finding.cause in UNMEASURED for finding in every)
    result.findings = [finding for finding in every if reports(finding) and finding.cause not in FACTS.get(result.kind, ())]
    left = list(result.findings)
    missed, mistaken = [], []
    for fault in result.faults:
        # A finding about two racks can be about two faults.
        about = [finding for finding in result.findings if concerns(finding, fault)]
        if not any(fault.is_named_by(finding) for finding in about):
            missed.append(fault)
        elif not fault.is_named_by(about[0]):
            mistaken.append(about[0])
        left = [finding for finding in left if finding not in about and not follows(finding, fault, result.topology)]
    result.is_right = not (missed or mistaken or left)
    result.said = said(result, missed, mistaken, left)


def reports(finding):
    """Whether a finding accuses."""
    return finding.severity != SILENT and finding.cause not in UNMEASURED


def follows(finding, fault, topology):
    """Whether a finding is the same thing seen from elsewhere."""
    return isinstance(fault, PathFault) and len(topology["racks"]) == 2 and fault.is_mirrored_by(finding)


def concerns(finding, fault):
    """Whether a finding is about what is broken: the host, its pairs, or a path of the rack."""
    if isinstance(fault, PathFault):
        return fault.is_place_of(finding)
    return finding.names(fault.target) or (finding.cause == DISK and DISK in fault.causes)


def said(result, missed, mistaken, left):
    """The column of the matrix."""
    if result.is_right:
        return result.kind
    if not result.findings:
        return "nothing"
    if not missed and not mistaken:
        return "right and others"
    first = (mistaken or left or result.findings)[0]
    return column_of(first.cause, first.symptom)


def column_of(cause, symptom):
    """The kind a cause means, else its own word."""
    for kind, stands_for in COLUMNS.items():
        if cause == stands_for:
            return kind
    return symptom if cause == "not-determined" and symptom else cause


COLUMNS = {
    "NIC both": "slow-host",
    "NIC tx": "slow-sender",
    "NIC rx": "slow-receiver",
    "uplink": "uplink",
    "CPU quota": "cpu-quota",
    "CPU hog": "core-saturated",
    "receive buffer": "receive-window",
    "send buffer": "send-buffer",
    "MTU": "mtu",
    "neighbour": "background-traffic",
    "disk writer": "disk",
}


def findings_of(finished):
    return [finding_of(finished, raw) for raw in finished.json["verdict"]["findings"]]


def finding_of(finished, raw):
    subject = raw["subject"]
    named = {"host": ["host"], "pair": ["src", "dst"]}.get(subject["type"], [])
    places = [finished.host_name(subject[key]) for key in named]
    of_racks = {"rack-pair": ["from", "to"], "rack": ["rack"]}.get(subject["type"], [])
    places += [finished.rack_name(subject[key]) for key in of_racks]
    return Finding(raw["cause"], raw.get("symptom"), raw["severity"], subject["type"], tuple(places), raw["sentence"])


def show_matrix(results):
    counts = Counter((result.kind, result.said) for result in results)
    rows = [kind for kind in [*ALL_KINDS, *CLEAN_KINDS] if any(result.kind == kind for result in results)]
    others = sorted({result.said for result in results} - set(rows))
    columns = [*rows, *others]
    # Names as heads would make the table wider than a page.
    table = Table("Truth in rows, what was said in columns; a dot is none", "", "truth", "runs", *map(str, range(1, len(columns) + 1)))
    for number, kind in enumerate(rows, 1):
        cells = [counts[kind, column] or "." for column in columns]
        table.add(number, kind, sum(counts[kind, column] for column in columns), *cells)
    table.show()
    for number, column in enumerate(others, len(rows) + 1):
        print(f"  {number}: {column}")


def show_wrong(results):
    wrong = [result for result in results if not result.is_right]
    if not wrong:
        return
    print("\nWrong answers")
    for result in wrong:
        print(f"  {result.kind}, seed {result.seed}, truth {result.truth()}")
        print(f"    said: {'; '.join(map(str, result.findings)) or 'nothing'}")
        print(f"    {result.sentence}\n    kept in {result.kept}")


def show_bars(results):
    faulty = [result for result in results if result.kind not in CLEAN_KINDS]
    clean = [result for result in results if result.kind in CLEAN_KINDS]
    table = Table("Bars, with the 95% bounds of Clopper and Pearson", "what", "runs", "share", "bar", "")
    if faulty:
        right = sum(result.is_right for result in faulty)
        share = right / len(faulty)
        table.add("right subject and right cause", in_words(right, len(faulty)), f"{share:.0%}", "at least 95%", met(share >= RIGHT_BAR))
    members = [result for result in faulty if result.kind.startswith(("member", "spine"))]
    if members:
        named = sum(any(fault.names_member(finding) for fault in r.faults for finding in r.findings) for r in members)
        share = named / len(members)
        table.add("the very path named", in_words(named, len(members)), f"{share:.0%}", "at least 90%", met(share >= 0.9))
    unmeasured = sum(result.unmeasured for result in results)
    if unmeasured:
        print(f"\n{unmeasured} of {len(results)} runs could not measure every flow")
    if clean:
        alarms = sum(not result.is_right for result in clean)
        share = alarms / len(clean)
        table.add("false alarms without a fault", in_words(alarms, len(clean)), f"{share:.0%}", "at most 2%", met(share <= FALSE_ALARM_BAR))
    table.show()


if __name__ == "__main__":
    main(measure)
