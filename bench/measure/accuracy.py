"""Accuracy against networks whose truth is known."""

import os
import random

from common import EFFICIENCY, HERE, CouldNotRun, Table, machine, main, mbps, met, note, setting

# Racks and hosts per rack.
SHAPES = [(2, 4), (3, 3)]
RATIOS = [1, 2, 4, 8]


def measure(work):
    print(machine())
    parts = {"alone": one_flow_alone, "oversubscription": oversubscription, "hosts": slow_hosts}
    wanted = os.environ.get("BENCH_PARTS", ",".join(parts)).split(",")
    for name in wanted:
        if name not in parts:
            raise CouldNotRun(f"BENCH_PARTS={name}: the parts are {', '.join(parts)}")
        parts[name](work)


def one_flow_alone(work):
    truth = 200e6 * EFFICIENCY
    table = Table(
        f"One flow alone on a 200 Mb/s link: 200 x 1448/1514 = {mbps(truth)} of payload",
        *("direction", "median", "95% interval", "samples", "error", "bar", ""),
    )
    with work.lab(1, 2, 200) as lab:
        finished = lab.run(HERE / "alone.yaml")
    for direction in ("forward", "reverse"):
        rate = finished.stage(direction)["flow_bits_per_sec"]
        if rate is None:
            raise CouldNotRun(f"the {direction} flow has no rate")
        error = rate["value"] / truth - 1
        interval = f"{mbps(rate['low'])} - {mbps(rate['high'])}"
        row = (direction, mbps(rate["value"]), interval, rate["samples"], f"{error:+.2%}", "1%")
        table.add(*row, met(abs(error) <= 0.01))
    table.show()


def oversubscription(work):
    table = Table(
        f"Oversubscription of every ordered rack pair, NICs of {nic_mbit()} Mb/s (aim: within 5%)",
        *("racks x hosts", "truth", "pair", "estimate", "interval", "error", "bar", "", "holds the truth"),
    )
    errors, held, pairs = [], 0, 0
    nic = nic_mbit()
    for racks, hosts in SHAPES:
        for ratio in RATIOS:
            note(f"{racks} x {hosts} at {ratio}:1")
            with work.lab(racks, hosts, nic, ratio) as lab:
                finished = lab.run(HERE / "ratios.yaml")
            for pair in finished.json["rack_pairs"]:
                error, holds = ratio_row(table, finished, f"{racks} x {hosts}", ratio, pair)
                pairs += 1
                held += holds
                errors += [] if error is None else [abs(error)]
                if error is None or abs(error) > 0.1 or not holds:
                    work.keep(finished)
    table.show()
    print(f"  {pairs} rack pairs: max error {max(errors, default=0):.1%}, within 5% {sum(e <= 0.05 for e in errors)}, ", end="")
    print(f"without an estimate {pairs - len(errors)}, interval holds the truth {held} of {pairs}: {met(held == pairs)}")


def nic_mbit():
    """All hosts together must stay well within what the cores of this machine carry."""
    return setting("BENCH_NIC_MBIT", 100)


def ratio_row(table, finished, shape, truth, pair):
    """Adds one rack pair; gives (relative error or None, whether the interval holds the truth)."""
    name = f"{finished.rack_name(pair['from'])} to {finished.rack_name(pair['to'])}"
    estimate = pair["oversubscription"]
    if estimate is None:
        table.add(shape, f"{truth}:1", name, "-", "-", "-", "10%", "MISSED", pair["reason"])
        return None, False
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    error = value / truth - 1
    holds = low is not None and low <= truth <= high
    interval = "-" if low is None else f"{low:.2f} - {high:.2f}"
    found = f"{value:.2f}:1"
    table.add(shape, f"{truth}:1", name, found, interval, f"{error:+.1%}", "10%", met(abs(error) <= 0.1), "yes" if holds else "NO")
    return error, holds


def slow_hosts(work):
    runs = setting("BENCH_RUNS", 10)
    seed = setting("BENCH_SEED", 1)
    draw = random.Random(seed)
    table = Table(
        f"Hosts: {runs} runs of each kind, NICs of {nic_mbit()} Mb/s; host, oversubscription and seed drawn (seed {seed})",
        *("kind", "right", "bar", "", "runs that accused others"),
    )
    kinds = {
        "a NIC at half rate: named slow in both directions, nobody else": lambda number: faulty(work, draw, number, "nic", "slow-host"),
        "a receive side at half rate: named slow receiver, nobody else": lambda number: faulty(work, draw, number, "rx", "slow-receiver"),
        "clean, every other by random picks: nobody accused": lambda number: clean(work, draw, number),
    }
    for kind, run_once in kinds.items():
        results = [run_once(number) for number in range(runs)]
        right = sum(is_right for is_right, _ in results)
        others = sum(bool(others) for _, others in results)
        table.add(kind, f"{right} of {runs}", f"{runs} of {runs}", met(right == runs), others)
    table.show()


def faulty(work, draw, number, fault, cause):
    """One run with one slow host; whether that host and side were named and nobody else, and who else was."""
    racks, hosts = SHAPES[number % len(SHAPES)]
    nic = nic_mbit()
    host = f"r{draw.randint(1, racks)}h{draw.randint(1, hosts)}"
    ratio = draw.choice([1, 2, 4])
    # Half of the time the user states the oversubscription, which gives the mesh other rounds.
    stated = ("--set", f"expect.oversubscription={ratio}") if draw.randint(0, 1) else ()
    lab = work.lab(racks, hosts, nic, ratio, f"{{host: {host}, {fault}: {nic // 2}M}}")
    return host_run(work, draw, lab, [(cause, host)], HERE / "hosts.yaml", *stated)


def clean(work, draw, number):
    """One run without a slow host; whether nobody was accused, and who was."""
    racks, hosts = SHAPES[number // 2 % len(SHAPES)]
    lab = work.lab(racks, hosts, nic_mbit(), draw.choice([1, 2, 4]))
    if number % 2 == 0:
        return host_run(work, draw, lab, [], HERE / "hosts.yaml")
    shorter = ("duration=600ms", "warm-up=200ms", "gap=200ms", "samples=6")
    args = [word for change in shorter for word in ("--set", change)]
    return host_run(work, draw, lab, [], "random-cross-rack", *args)


def host_run(work, draw, lab, expected, scenario, *args):
    seed = draw.randint(1, 2**31)
    with lab:
        finished = lab.run(scenario, "--seed", str(seed), *args)
    accused = finished.accused()
    others = [whom for whom in accused if whom not in expected]
    is_right = sorted(accused) == sorted(expected)
    answer = "right" if is_right else "WRONG"
    if others or not is_right:
        answer += f", accused are {accused}, kept in {work.keep(finished)}"
    collisions = sum(stage["random_collisions"] or 0 for stage in finished.json["stages"])
    missing = sum(stage["missing"] for stage in finished.json["stages"])
    note(
        f"{lab.title}, {' '.join(args)}, seed {seed}, {collisions} collisions, {missing} flows missing, "
        f"{finished.wall_s:.0f} s: {answer}"
    )
    return is_right, others


main(measure)
