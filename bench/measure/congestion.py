"""Impact of aggressors behind FIFO and fair queues, and slowdown of messages on an idle network."""

from common import CouldNotRun, Table, machine, main, median, met, note, setting

NIC_MBIT = 200
OVERSUBSCRIPTION = 4
# How many times greater the impact behind one queue is than behind fair ones.
QUEUES_APART = 5
IDLE_SLOWDOWN = (0.95, 1.05)

IMPACT = """name: impact
order: random
defaults: {duration: 1s, warm-up: 500ms, gap: 300ms, samples: 6}
tests:
  - {name: round trips, pattern: congestion, workload: tcp-rr}
  - {name: round trips under permutation, pattern: {congestion: {aggressors: permutation}}, workload: tcp-rr}
"""

IDLE = """name: idle
order: random
defaults: {workload: flow-sizes, distribution: DISTRIBUTION, duration: 2s, warm-up: 1s, gap: 300ms, samples: 6}
tests:
  - {name: alone, pattern: congestion}
"""
DISTRIBUTIONS = ("hadoop", "web-search")


class Network:
    """Two racks of four hosts, with one kind of queue."""

    def __init__(self, queue, oversubscription):
        self.title = f"2 x 4 at {oversubscription}:1, {queue}"
        self.lines = f"racks: 2\nhosts-per-rack: 4\nnic: {NIC_MBIT}M\noversubscription: {oversubscription}\nqueue: {queue}\n"


def measure(work):
    print(machine())
    runs = setting("BENCH_RUNS", 10)
    impact(work, runs)
    idle(work, runs)


def impact(work, runs):
    scenario = work.dir / "impact.yaml"
    scenario.write_text(IMPACT)
    ratios = []
    for number in range(runs):
        fifo, fair = (impact_once(work, scenario, queue, number + 1) for queue in ("fifo", "fair"))
        ratios.append(fifo / fair)
        note(f"run {number + 1} of {runs}: x{fifo:.1f} behind one queue, x{fair:.2f} behind fair queues")
    table = Table(f"Round trips under a permutation, 2 x 4 hosts at {OVERSUBSCRIPTION}:1", "fifo over fair, median", "least", "bar", "")
    table.add(f"{median(ratios):.1f}", f"{min(ratios):.1f}", f"at least {QUEUES_APART}", met(min(ratios) >= QUEUES_APART))
    table.show()


def impact_once(work, scenario, queue, seed):
    with work.fabric(Network(queue, OVERSUBSCRIPTION)) as lab:
        finished = lab.run(scenario, "--seed", str(seed))
    return finished.json["congestion"][0]["mean"]["factor"]["value"]


def idle(work, runs):
    low, high = IDLE_SLOWDOWN
    rows = []
    for distribution in DISTRIBUTIONS:
        scenario = work.dir / f"{distribution}.yaml"
        scenario.write_text(IDLE.replace("DISTRIBUTION", distribution))
        slowdowns = [each for seed in range(1, runs + 1) for each in idle_once(work, scenario, seed)]
        within = sum(low <= each <= high for each in slowdowns)
        share = f"{within} of {len(slowdowns)}"
        rows.append((distribution, share, f"{min(slowdowns):.3f}", f"{max(slowdowns):.3f}", "all", met(within == len(slowdowns))))
    table = Table("Messages alone on an idle network: slowdown p50 of each size", "distribution", "sizes within 5%", "least", "most", "bar", "")
    for row in rows:
        table.add(*row)
    table.show()


def idle_once(work, scenario, seed):
    """The median slowdown of each size."""
    with work.fabric(Network("fair", 1)) as lab:
        finished = lab.run(scenario, "--seed", str(seed), "--expect-nic", f"{NIC_MBIT}M")
    stages = finished.json["flow_completion"]
    if not stages:
        raise CouldNotRun("the run has no flow completion times")
    slowdowns = [size["p50"]["value"] for size in stages[0]["sizes"]]
    note(f"{scenario.stem}, seed {seed}: {' '.join(f'{each:.3f}' for each in slowdowns)}")
    return slowdowns


main(measure)
