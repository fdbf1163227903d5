"""The faults of the suite: how each is drawn, how a lab file says it, and what an answer must say to be right."""

import re
from dataclasses import dataclass

CLEAN = "clean"
TWO = "two at once"
HOG = "CPU hog"

SLOW_BOTH, SLOW_TX, SLOW_RX = "slow-host", "slow-sender", "slow-receiver"


@dataclass(frozen=True)
class Fault:
    """One known fault. `causes` are the right ones; `symptom`, where there is one, is the side that must be named."""

    kind: str
    target: str
    size: str
    causes: frozenset
    symptom: str | None = None

    def lab_line(self):
        place = "rack" if self.is_rack() else "host"
        return f"{{{place}: {self.target}, {self.size}}}"

    def is_rack(self):
        return "h" not in self.target

    def is_named_by(self, finding):
        """Whether a finding says this: the right cause, at the right place, on the right side."""
        if finding.cause not in self.causes:
            return False
        # Hosts of a lab share the machine's disks: that one is busy is true of all of them.
        if finding.cause == "disk":
            return True
        if self.symptom and self.symptom not in (finding.cause, finding.symptom):
            return False
        return finding.names(self.target)


@dataclass(frozen=True)
class Finding:
    """One finding of a run, with names in place of numbers."""

    cause: str
    symptom: str | None
    severity: str
    kind: str  # of its subject: host, pair, rack, rack-pair, run
    places: tuple  # hosts or racks of its subject
    sentence: str

    def names(self, target):
        """A finding about the whole run names a place in its sentence."""
        if self.kind == "run":
            said = words(self.sentence)
            return target in said or (is_rack(target) and said[0] == "all" and "racks" in said)
        return target in self.places

    def __str__(self):
        where = " to ".join(self.places) or self.kind
        return f"{self.cause} of {where}"


def is_rack(target):
    """`r1`; a host is `r1h2`."""
    return re.fullmatch(r"r\d+", target) is not None


def words(sentence):
    return sentence.replace(",", " ").replace(";", " ").replace(":", " ").split()


def slow_nic(side, symptom):
    """A link that is slow without a reason that counters could report is only ever known by its side; where the queue in front
    of it is seen to be full, or its speed is known, the cause may be said in those words."""

    def draw(dice, shape):
        rate = round(shape.nic_mbit * dice.uniform(0.3, 0.75))
        causes = {symptom, "line-rate", "link-speed"}
        return Fault(f"NIC {side}", shape.host(dice), f"{side}: {rate}M", frozenset(causes), symptom)

    return draw


def on_host(kind, cause, size):
    """A fault of one host; `size(dice, shape)` gives the lab file's words."""

    def draw(dice, shape):
        return Fault(kind, shape.host(dice), size(dice, shape), frozenset({cause}))

    return draw


def on_rack(kind, cause, size):
    def draw(dice, shape):
        return Fault(kind, shape.rack(dice), size(dice, shape), frozenset({cause}))

    return draw


def narrow_uplink(dice, shape):
    return f"uplink: {round(shape.nic_mbit * shape.hosts / dice.uniform(2, 8))}M"


def neighbour(dice, shape):
    return f"neighbour: {round(shape.nic_mbit * dice.uniform(0.3, 0.6))}M"


def loss(dice, _):
    return f"loss: {dice.uniform(2, 6):.1f}%"


# The lab's round trips are a tenth of a millisecond, so only the smallest buffers hold a flow back.
def buffer(which):
    return lambda dice, _: f"{which}-buffer: {dice.choice([4096, 5120, 6144])}"


# What a CPU does per byte differs from machine to machine, so what is left to a host is drawn as a part of what a healthy one
# uses here.
def cpu_quota(dice, shape):
    return f"cpu-quota: {max(1.0, 100 * scarce_cores(dice, shape)):.1f}%"


def cpu_hog(dice, shape):
    return f"cpu-hog: {max(50.0, min(99.0, 100 * (1 - scarce_cores(dice, shape)))):.1f}%"


def scarce_cores(dice, shape):
    return shape.healthy_cores * dice.uniform(0.6, 1.0)


def mtu(dice, _):
    return f"mtu: {dice.choice([1280, 1400, 1450, 1480])}"


KINDS = {
    "NIC both": slow_nic("nic", SLOW_BOTH),
    "NIC tx": slow_nic("tx", SLOW_TX),
    "NIC rx": slow_nic("rx", SLOW_RX),
    "uplink": on_rack("uplink", "uplink", narrow_uplink),
    "host loss": on_host("host loss", "loss", loss),
    "uplink loss": on_rack("uplink loss", "loss", loss),
    "CPU quota": on_host("CPU quota", "cpu-quota", cpu_quota),
    HOG: on_host(HOG, "core-saturated", cpu_hog),
    "receive buffer": on_host("receive buffer", "receive-window", buffer("receive")),
    "send buffer": on_host("send buffer", "send-buffer", buffer("send")),
    "MTU": on_host("MTU", "mtu", mtu),
    "neighbour": on_host("neighbour", "background-traffic", neighbour),
    "disk writer": on_host("disk writer", "disk", lambda *_: "disk-writer: on"),
}


@dataclass(frozen=True)
class Shape:
    """A lab without faults: racks, hosts of each, Mb/s of a NIC, and the cores that a host of it uses under load; its uplinks
    block nothing."""

    racks: int
    hosts: int
    nic_mbit: int
    healthy_cores: float

    def host(self, dice):
        return f"{self.rack(dice)}h{dice.randint(1, self.hosts)}"

    def rack(self, dice):
        return f"r{dice.randint(1, self.racks)}"


def draw_faults(kind, dice, shape):
    """The faults of one run. Two at once are of two kinds and at two places, neither inside the other."""
    if kind == CLEAN:
        return []
    if kind != TWO:
        return [KINDS[kind](dice, shape)]
    while True:
        faults = [KINDS[name](dice, shape) for name in dice.sample(sorted(KINDS), 2)]
        racks = [fault.target.split("h")[0] for fault in faults]
        if racks[0] != racks[1] or not any(fault.is_rack() for fault in faults):
            if faults[0].target != faults[1].target:
                return faults
