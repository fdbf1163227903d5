"""Networks of the fault suite beyond one pipe a rack: hashed paths, NIC classes, unequal racks, LAG, pods, and what can be wrong with them.

Each kind is drawn from dice as (lines of a lab file, faults). Rates are small, so that two cores carry all hosts.
"""

import re
from dataclasses import dataclass, replace

from fault_kinds import Fault, words

# What may be said of a rack of which a path is in trouble. The member itself is asked for apart.
PATH_CAUSES = frozenset({"bad-path", "lost-path", "uplink", "loss"})
UPLINK_CAUSES = frozenset({"uplink"})
# What limits every host alike, by the word of the lab file.
SLOW_CAUSES = {"flow-cap": "connection-limit", "nic": "link-speed", "receive-buffer": "receive-window"}

# Directions of a path by the words of lab files.
TX, RX, BOTH = "TX", "RX", "both"
DIRECTIONS = {"up": TX, "down": RX, "up-loss": TX, "down-loss": RX}


@dataclass(frozen=True)
class PathFault(Fault):
    """Something about a path (`r1/2`), a spine (`spine/2`), a rack's uplink, or everything (`all`)."""

    def lab_line(self):
        owner, _, path = self.target.partition("/")
        if owner == "all":
            return ", ".join(f"{{host: r{rack}h{host}, {self.size}}}" for rack in (1, 2) for host in range(1, 5))
        if self.size.endswith(":1"):
            return None
        if owner == "spine":
            return f"{{spine: {path}, {self.size}}}"
        return f"{{rack: {owner}, {'path: ' + path + ', ' if path else ''}{self.size}}}"

    def is_rack(self):
        return True

    def is_named_by(self, finding):
        if self.is_left_open_by(finding):
            return True
        return finding.cause in self.causes and self.is_place_of(finding) and self.has_direction(finding)

    def is_left_open_by(self, finding):
        """Of a rack with one host nobody can know whether the host or the uplink is slow."""
        return self.causes == UPLINK_CAUSES and f"or the uplinks of {self.target}, which has no other host" in finding.sentence

    def is_place_of(self, finding):
        """A spine is every rack's. A path is its rack's; which member it is, is judged apart."""
        owner = self.target.partition("/")[0]
        if owner in ("spine", "all"):
            return finding.kind != "host" or owner == "all"
        if owner == "pods":
            return "pod of " in finding.sentence
        return finding.names(owner) or owner in words(finding.sentence)

    def direction(self):
        """What a finding must say; `None` where there is nothing to say."""
        if "/" not in self.target or self.target.startswith("spine"):
            return None
        word, _, value = self.size.partition(": ")
        return DIRECTIONS.get(word) or DIRECTIONS.get(value if word == "withdrawn" else "", BOTH)

    def has_direction(self, finding):
        """Whether the rack's direction is among those named: between two racks TX of one is RX of the other."""
        asked = self.direction()
        if asked is None:
            return True
        owner = self.target.partition("/")[0]
        if "in both directions" in finding.sentence:
            return asked == BOTH
        named = re.findall(rf"\b{owner}( TX| RX)?(?=[:, ])", finding.sentence)
        if finding.cause in ("uplink", "loss"):
            named = re.findall(r" TX\b| RX\b", finding.sentence)
        if finding.cause in ("lost-path", "uplink") and f"{owner} to " in finding.sentence:
            named = [TX]
        if finding.cause in ("lost-path", "uplink") and f" to {owner}:" in finding.sentence:
            named = [RX]
        return any((word.strip() or BOTH) in (asked, self.also()) for word in named)

    def also(self):
        """A black hole takes connections in both directions, whichever it swallows; the very one is as right."""
        word, _, value = self.size.partition(": ")
        return DIRECTIONS[value] if word == "black-hole" else None

    def is_mirrored_by(self, finding):
        """Between two racks what leaves the one enters the other: its uplink is as narrow, seen from there."""
        facing = {TX: " RX", RX: " TX"}.get(self.direction())
        return finding.cause == "uplink" and facing is not None and facing in finding.sentence

    def names_member(self, finding):
        """Whether the very path is named: by the first address of its routers, which end alike towards every rack."""
        _, _, path = self.target.partition("/")
        if not path or not self.is_place_of(finding):
            return False
        last = 4 * (int(path) - 1)
        return re.search(rf"path via 198\.19\.\d+\.({last + 1}|{last + 2})\b", finding.sentence) is not None


@dataclass(frozen=True)
class Network:
    """A lab file without its name and faults, and what a host of it may use."""

    lines: str
    title: str
    racks: int
    paths: int
    member_mbit: float
    hogs: int = 0
    # What the run is told to expect: labs' interfaces report no speed.
    expects: tuple = ()


def lab(racks, hosts, nic, paths, queue="fair", uplink=None, more="", hogs=0):
    """Equal racks whose uplinks block nothing unless `uplink` says otherwise. Mb/s."""
    uplink = uplink or hosts * nic
    lines = (
        f"racks: {racks}\nhosts-per-rack: {hosts}\nnic: {nic}M\npaths: {paths}\nqueue: {queue}\nuplink: {round(uplink * 1000)}k\n{more}"
    )
    return Network(lines, f"{racks} x {hosts} on {paths} paths, {queue}", racks, paths, uplink / paths, hogs)


# (racks, hosts, NIC in Mb/s, paths). A path carries at least one NIC.
SHAPES = [(2, 4, 50, 2), (2, 4, 50, 4), (3, 3, 40, 3), (2, 8, 25, 4), (2, 8, 25, 8)]


def fabric(dice, hogs=0):
    racks, hosts, nic, paths = dice.choice(SHAPES)
    return lab(racks, hosts, nic, paths, dice.choice(["fair", "fifo"]), hogs=hogs)


# --- Nothing is wrong ---


def ecmp(dice):
    return fabric(dice), []


def fifo(dice):
    racks, hosts = dice.choice([(2, 3), (2, 4), (3, 3)])
    return lab(racks, hosts, 50, 1, "fifo"), []


def nic_classes(dice):
    slow, fast = dice.choice([(20, 60), (10, 40), (25, 50)])
    racks, hosts = dice.choice([(2, 4), (3, 4)])
    paths = dice.choice([1, 2])
    uplink = hosts // 2 * (slow + fast)
    network = lab(racks, hosts, 50, paths, uplink=uplink)
    return Network(network.lines.replace("nic: 50M", f"nic: [{slow}M, {fast}M]"), f"NICs of {slow} and {fast}", racks, paths, uplink / paths), []


def unequal(dice):
    return unequal_racks(dice, dice.choice(UNEQUAL), 1), []


# Hosts of each rack.
UNEQUAL = [(2, 4), (2, 2, 3), (1, 4), (2, 3, 5)]


def unequal_racks(dice, sizes, ratio):
    paths = dice.choice([1, 2])
    racks = ", ".join(f"{{hosts: {size}, paths: {1 if size < 2 else paths}}}" for size in sizes)
    lines = f"racks: [{racks}]\nnic: 40M\nqueue: {dice.choice(['fair', 'fifo'])}\noversubscription: {ratio}\n"
    return Network(lines, f"racks of {sizes}", len(sizes), paths, 40)


def double_links(dice):
    racks, hosts = dice.choice([(2, 3), (2, 4)])
    return lab(racks, hosts, 50, dice.choice([1, 2]), more="lag-members: 2\n"), []


def pods(dice):
    # As many paths each: a core that only one pod reaches carries nothing between them.
    pod = f"{{racks: 2, paths: {dice.choice([1, 2])}}}"
    more = f"pods: [{pod}, {pod}]\n"
    return lab(4, 2, 40, dice.choice([1, 2]), more=more), []


def light_background(dice):
    racks, hosts, nic, paths = dice.choice(SHAPES[:3])
    rate = round(hosts * nic * dice.uniform(0.1, 0.4))
    more = f"background: [{{from: r1, to: r2, rate: {rate}M, on: 1s, off: 2s}}]\n"
    return lab(racks, hosts, nic, paths, uplink=2 * hosts * nic, more=more), []


def starved(dice):
    """The machine does other work: many flows start late or get no CPU. Nobody is to blame."""
    return fabric(dice, hogs=dice.choice([4, 8, 16])), []


def bbr(dice):
    racks, hosts, nic, paths = dice.choice(SHAPES[:3])
    return lab(racks, hosts, nic, paths, dice.choice(["fair", "fifo"]), more="congestion-control: bbr\n"), []


# --- One path, or one spine ---


def on_path(kind, size):
    def draw(dice):
        network = fabric(dice)
        target = f"r{dice.randint(1, network.racks)}/{dice.randint(1, network.paths)}"
        return network, [PathFault(kind, target, size(dice, network), PATH_CAUSES)]

    return draw


def on_spine(kind, size):
    def draw(dice):
        network = fabric(dice)
        return network, [PathFault(kind, f"spine/{dice.randint(1, network.paths)}", size(dice, network), PATH_CAUSES)]

    return draw


def narrow(dice, network):
    way = dice.choice(["up", "down", "uplink"])
    return f"{way}: {round(1000 * network.member_mbit * dice.uniform(0.25, 0.6))}k"


def narrow_spine(dice, network):
    return f"uplink: {round(1000 * network.member_mbit * dice.uniform(0.25, 0.6))}k"


def lossy(dice, _):
    return f"{dice.choice(['up-loss', 'down-loss', 'loss'])}: {dice.uniform(0.1, 2):.2f}%"


def black_hole(dice, _):
    return f"black-hole: {dice.choice(['up', 'down'])}"


def down(*_):
    return "link: down"


def one_sided(dice, _):
    return f"withdrawn: {dice.choice(['up', 'down'])}"


# --- Uplinks ---


def oversubscribed(dice):
    racks, hosts, nic, paths = dice.choice(SHAPES[:3])
    ratio = dice.choice([1.5, 2, 4])
    paths = min(paths, max(1, int(hosts / ratio)))
    network = lab(racks, hosts, nic, paths, dice.choice(["fair", "fifo"]), uplink=hosts * nic / ratio)
    return network, [PathFault("oversubscribed paths", f"r{rack}", f"{ratio}:1", UPLINK_CAUSES) for rack in range(1, racks + 1)]


def oversubscribed_unequal(dice):
    ratio = dice.choice([1.5, 2, 4])
    sizes = dice.choice(UNEQUAL)
    # What all others together cannot fill, nobody can know.
    known = [rack for rack, size in enumerate(sizes, 1) if 2 * size <= sum(sizes)]
    faults = [PathFault("oversubscribed unequal", f"r{rack}", f"{ratio}:1", UPLINK_CAUSES) for rack in known]
    return unequal_racks(dice, sizes, ratio), faults


def oversubscribed_pods(dice):
    """Two paths of one pod, of which the other reaches the first one's core alone."""
    more = "pods: [{racks: 2, paths: 1}, {racks: 2, paths: 2}]\n"
    network = lab(4, 2, 40, dice.choice([1, 2]), more=more)
    return network, [PathFault("oversubscribed pods", "pods", "2:1", UPLINK_CAUSES)]


# --- All alike ---


def slow_by(what):
    def draw(dice):
        network = replace(lab(2, 4, 50, dice.choice([1, 2])), expects=("--set", "expect.nic=50M"))
        size = what(dice)
        cause = SLOW_CAUSES[size.partition(":")[0]]
        return network, [PathFault("uniformly slow", "all", size, frozenset({cause}))]

    return draw


def cap_nic_or_buffer(dice):
    """Limits far below the link, and a buffer that costs 7%, since its segments are small."""
    # A send buffer of two segments slows nothing where a round trip is shorter than a segment takes on the link.
    return dice.choice([f"flow-cap: {dice.randint(10, 20)}M", f"nic: {dice.randint(15, 38)}M", "receive-buffer: 4096"])


# Nothing may be accused.
HEALTHY = {
    "ECMP": ecmp,
    "FIFO": fifo,
    "NIC classes": nic_classes,
    "unequal racks": unequal,
    "LAG": double_links,
    "pods": pods,
    "light background": light_background,
    "BBR": bbr,
    "starved": starved,
}

# Causes that are right in a network without a fault: one of two links is all that a single connection can have.
FACTS = {"LAG": {"connection-limit"}}

FAULTY = {
    "member narrow": on_path("member narrow", narrow),
    "member lossy": on_path("member lossy", lossy),
    "member black hole": on_path("member black hole", black_hole),
    "member down": on_path("member down", down),
    "member one-sided": on_path("member one-sided", one_sided),
    "spine narrow": on_spine("spine narrow", narrow_spine),
    "spine lossy": on_spine("spine lossy", lossy),
    "oversubscribed paths": oversubscribed,
    "oversubscribed unequal": oversubscribed_unequal,
    "oversubscribed pods": oversubscribed_pods,
    "uniformly slow": slow_by(cap_nic_or_buffer),
}

FABRICS = {**HEALTHY, **FAULTY}
