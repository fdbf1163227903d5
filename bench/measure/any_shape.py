"""Networks of the fault suite that are drawn as widely as two cores carry them, for `qualify` itself: rates from 5 to 300 Mb/s, one to six hosts
a rack, equal or not, up to four paths, IPv4 and IPv6, fair and FIFO queues, cubic and BBR, any oversubscription.

The other suites' networks have much in common, and so do the mistakes that they can find.
"""

import math
from dataclasses import dataclass

from fabric_kinds import PATH_CAUSES, UPLINK_CAUSES, Network, PathFault
from fault_kinds import SLOW_BOTH, Fault

# What all hosts of a lab may send together, in Mb/s.
TOGETHER_MBIT = 500
RATIOS = [1.5, 2, 2.5, 3, 4, 5, 8]


@dataclass(frozen=True)
class Drawn:
    """One network of any shape: hosts of each rack, Mb/s of a NIC, and paths of each rack."""

    sizes: list
    nic_mbit: int
    paths: int
    more: str

    def network(self, ratio=1):
        racks = ", ".join(f"{{hosts: {size}}}" for size in self.sizes)
        lines = f"racks: [{racks}]\nnic: {self.nic_mbit}M\npaths: {self.paths}\noversubscription: {ratio}\n{self.more}"
        title = f"{'+'.join(map(str, self.sizes))} hosts of {self.nic_mbit} Mb/s on {self.paths} paths at {ratio}:1, {' '.join(self.more.split())}"
        return Network(lines, title, len(self.sizes), self.paths, 0)

    def racks_whose_uplinks_show(self):
        """What all others together cannot fill, nobody can know; nor whether a lone host or its uplink is slow."""
        every = sum(self.sizes)
        return [rack for rack, size in enumerate(self.sizes, 1) if 1 < size and 2 * size <= every]

    def some_host(self, dice):
        rack = dice.choice([rack for rack, size in enumerate(self.sizes, 1) if size > 1])
        return f"r{rack}h{dice.randint(1, self.sizes[rack - 1])}"


def drawn(dice, smallest=1, paths=(1, 1, 1, 2, 3, 4)):
    """A path carries at least one NIC where nothing blocks, else a single flow could fill it."""
    racks = dice.choice([2, 2, 3, 4, 5])
    sizes = [dice.randint(smallest, 6)] * racks if dice.random() < 0.6 else [dice.randint(smallest, 6) for _ in range(racks)]
    most = min(300, TOGETHER_MBIT / sum(sizes))
    nic = round(math.exp(dice.uniform(math.log(5), math.log(most))))
    more = [f"queue: {dice.choice(['fair', 'fifo'])}"]
    more += ["address-family: ipv6"] if dice.random() < 0.3 else []
    more += ["congestion-control: bbr"] if dice.random() < 0.2 else []
    return Drawn(sizes, nic, min(dice.choice(paths), *sizes), "\n".join(more) + "\n")


def without_fault(dice):
    return drawn(dice).network(), []


def oversubscribed(dice):
    """At a ratio that some rack can show."""
    while True:
        shape = drawn(dice)
        ratio = dice.choice(RATIOS)
        known = shape.racks_whose_uplinks_show()
        if known:
            faults = [PathFault("any shape, N:1", f"r{rack}", f"{ratio}:1", UPLINK_CAUSES) for rack in known]
            return shape.network(ratio), faults


def slow_host(dice):
    shape = drawn(dice, smallest=2)
    size = f"nic: {round(1000 * shape.nic_mbit * dice.uniform(0.3, 0.7))}k"
    causes = frozenset({SLOW_BOTH, "line-rate", "link-speed"})
    return shape.network(), [Fault("any shape, slow host", shape.some_host(dice), size, causes, SLOW_BOTH)]


def narrow_path(dice):
    while True:
        shape = drawn(dice, smallest=2, paths=(2, 3, 4))
        if shape.paths > 1:
            break
    rack = dice.randint(1, len(shape.sizes))
    member_mbit = shape.sizes[rack - 1] * shape.nic_mbit / shape.paths
    size = f"{dice.choice(['up', 'down', 'uplink'])}: {round(1000 * member_mbit * dice.uniform(0.25, 0.5))}k"
    return shape.network(), [PathFault("any shape, narrow path", f"r{rack}/{dice.randint(1, shape.paths)}", size, PATH_CAUSES)]


ANY_HEALTHY = {"any shape": without_fault}

ANY_FAULTY = {
    "any shape, N:1": oversubscribed,
    "any shape, slow host": slow_host,
    "any shape, narrow path": narrow_path,
}

ANY_SHAPE = {**ANY_HEALTHY, **ANY_FAULTY}
