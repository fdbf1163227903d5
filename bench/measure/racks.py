"""How often `hosts --racks-of` finds the racks of a lab, from a run that knew of none."""

import re
from itertools import combinations

from common import CouldNotRun, Table, call, machine, main, met, note, setting

RACKS = 3
HOSTS_PER_RACK = 3
OVERSUBSCRIPTION = 3
NIC_MBIT = 100
# Of ten runs.
RIGHT_SHARE = 0.9


def measure(work):
    print(machine())
    runs = setting("BENCH_RUNS", 10)
    samples = setting("BENCH_SAMPLES", 40)
    indexes = []
    for number in range(runs):
        index, words = run_once(work, samples, seed=number + 1)
        indexes.append(index)
        note(f"run {number + 1} of {runs}: adjusted Rand index {index:.2f} ({words})")
    right = sum(index > 0.999 for index in indexes)
    table = Table(f"Racks of {RACKS} x {HOSTS_PER_RACK} at {OVERSUBSCRIPTION}:1, {samples} rounds over all hosts", "right (index 1)", "lowest index", "bar", "")
    table.add(f"{right} of {runs}", f"{min(indexes):.2f}", f"{RIGHT_SHARE:.0%}", met(right >= RIGHT_SHARE * runs))
    table.show()


def run_once(work, samples, seed):
    """The index and what the command reports of its guess."""
    truth = {f"r{rack}h{host}": rack for rack in range(1, RACKS + 1) for host in range(1, HOSTS_PER_RACK + 1)}
    with work.lab(RACKS, HOSTS_PER_RACK, NIC_MBIT, OVERSUBSCRIPTION) as lab:
        # Named hosts: without the lab's racks.
        finished = lab.run("permutation", "--hosts", ",".join(truth), "--set", f"samples={samples}", "-t", "500ms", "--seed", str(seed))
    done = call(["hosts", "--racks-of", finished.dir.name, "--runs-dir", str(finished.dir.parent)], 60)
    if done.returncode != 0:
        work.keep(finished)
        return 0.0, done.stderr.strip()
    guess = {host: rack for rack, hosts in racks(done.stdout.strip()) for host in hosts}
    if guess.keys() != truth.keys():
        raise CouldNotRun(f"hosts --racks-of: other hosts than the lab's: {done.stdout.strip()}")
    index = adjusted_rand_index(truth, guess)
    if index < 0.999:
        work.keep(finished)
    return index, done.stderr.strip()


def racks(text):
    """Name and hosts of each rack of `name=set,name=set`."""
    for part in re.split(r",(?=[^,=\[\]]+=)", text):
        name, _, folded = part.partition("=")
        expanded = call(["hosts", folded], 60)
        if expanded.returncode != 0:
            raise CouldNotRun(f"eastwest hosts {folded}: {expanded.stderr.strip()}")
        yield name, expanded.stdout.split()


def adjusted_rand_index(a, b):
    """Hubert and Arabie, 1985, by pairs of hosts: 1 for the same division, about 0 for a random one."""
    pairs = list(combinations(sorted(a), 2))
    same = [(a[x] == a[y], b[x] == b[y]) for x, y in pairs]
    both = sum(in_a and in_b for in_a, in_b in same)
    of_a, of_b = sum(in_a for in_a, _ in same), sum(in_b for _, in_b in same)
    chance = of_a * of_b / len(pairs)
    highest = (of_a + of_b) / 2
    return 1.0 if highest == chance else (both - chance) / (highest - chance)


main(measure)
