"""The replay corpus: recorded runs with their truth, one small file each, for `make replay`.

A file is zstd of lines: the kind, the truth (`ew_sim::Truth`), the run's manifest, and its events as they were recorded.

    python3 -B bench/measure/corpus.py KEPT_RUNS...     packs directories that faults.py kept
"""

import json
import subprocess
import sys
from pathlib import Path

from common import HERE, CouldNotRun

CORPUS = HERE.parent / "corpus"
TRUTH = "truth.json"


def pack(run, truth, corpus=CORPUS):
    """Writes the corpus file of a run directory, and returns its path."""
    corpus.mkdir(parents=True, exist_ok=True)
    manifest = json.loads((run / "run.json").read_text())
    lines = [compact({"kind": truth["kind"], "seed": truth["seed"]}), compact(truth_of(truth)), compact(manifest), *events(run)]
    target = corpus / f"{truth['kind'].replace(' ', '-')}-{truth['seed']}.zst"
    packed = subprocess.run(["zstd", "-19", "-q", "-c"], input="\n".join(lines).encode(), capture_output=True, check=False)
    if packed.returncode != 0:
        raise CouldNotRun(f"zstd: {packed.stderr.decode().strip()}; install the package zstd")
    target.write_bytes(packed.stdout)
    return target


# From here on a run is taken for one that was short of CPU: the median flow's engine threads waited for this part of the window.
STARVED_WAIT_SHARE = 0.25
STARVED = "starved"


def truth_of(record):
    """As the simulator shows the truth of its networks, so that one judge serves both."""
    racks = record["topology"]["racks"]
    wait_share = record["engine_wait_share"] or 0
    return {
        "family": family(record),
        "axes": [f"{len(racks)} racks", f"engines waited {100 * wait_share:.0f}% for CPU"],
        "faults": [] if record["healthy"] else list(filter(None, (fault_of(fault, racks) for fault in record["faults"]))),
        "ratios": [{way: ratio(rack, way) for way in ("up", "down")} for rack in racks],
        "pod_ratio": pod_ratio(record["topology"]),
        "paths": max(len(rack["paths"]) for rack in racks),
        "is_starved": record["kind"] == STARVED or wait_share >= STARVED_WAIT_SHARE,
    }


def family(record):
    if record["healthy"]:
        return "healthy"
    kind = record["kind"]
    if kind == "uniformly slow":
        return "uniformly-slow"
    targets = [fault["target"] for fault in record["faults"]]
    if targets and all(map(is_host, targets)):
        return "slow-hosts"
    return "bad-member" if kind.startswith(("member", "spine", "uplink loss")) else "oversubscribed"


def ratio(rack, way):
    """What a rack's hosts send, or receive, over what its usable paths carry."""
    side = {"up": "tx-bits-per-sec", "down": "rx-bits-per-sec"}[way]
    usable = [path[way] for path in rack["paths"] if path["link-up"] and path[way]["routed"]]
    carried = sum(direction["rate-bits-per-sec"] for direction in usable)
    return sum(host["nic"][side] for host in rack["hosts"]) / carried


def pod_ratio(topology):
    """What the hosts of a pod send, at most, over what leads to another: as much as both reach of each core."""
    pods = topology.get("pods") or []
    rates = [[path["up"]["rate-bits-per-sec"] for path in pod["paths"]] for pod in pods]
    carried = [sum(map(min, one, other)) for at, one in enumerate(rates) for other in rates[:at]]
    sent = [0] * len(pods)
    for rack in topology["racks"]:
        if pods:
            sent[rack["pod"]] += sum(host["nic"]["tx-bits-per-sec"] for host in rack["hosts"])
    return max(sent) / min(carried) if carried else 1


def is_host(target):
    """`r1h2`; a rack is `r1`, and a path of it `r1/3`."""
    return "h" in target


# A host's link; all other faults of a host have one cause.
NIC_DIRECTIONS = {"nic": "both", "tx": "up", "rx": "down"}


def host_fault(fault, word, racks):
    """Of its link, or what its own counters show."""
    hosts = [host for rack in racks for host in rack["hosts"]]
    at = [host["name"] for host in hosts].index(fault["target"])
    if word not in NIC_DIRECTIONS:
        return {"type": "on-host", "host": at, "cause": fault["causes"][0]}
    rates = [min(host["nic"]["tx-bits-per-sec"], host["nic"]["rx-bits-per-sec"]) for host in hosts]
    return {"type": "host", "host": at, "direction": NIC_DIRECTIONS[word], "share": rates[at] / max(rates)}


def fault_of(fault, racks):
    """`None` for what the ratios say."""
    owner, _, path = fault["target"].partition("/")
    word, _, value = fault["size"].partition(": ")
    if is_host(owner):
        return host_fault(fault, word, racks)
    if word == "loss":
        # Where a rack has one path, that is lossy.
        path = path or "1"
    if owner == "all":
        cause = {"flow-cap": "flow-cap", "receive-buffer": "receive-window", "cpu-quota": "cpu-quota"}.get(word)
        return {"type": "uniform", "cause": cause} if cause else None
    if not path:
        return None
    direction, kind = member_fault(word, value)
    rack = None if owner == "spine" else int(owner[1:]) - 1
    if kind is None:
        rates = [member["down" if direction == "down" else "up"]["rate-bits-per-sec"] for member in racks[rack or 0]["paths"]]
        kind = {"narrow": rates[int(path) - 1] / max(rates)}
    return {"type": "member", "rack": rack, "member": int(path) - 1, "direction": direction, "kind": kind}


def member_fault(word, value):
    """Its direction and kind; `None` for a narrow one, which the rates show."""
    ways = {"uplink": "both", "loss": "both", "link": "both", "up-loss": "up", "down-loss": "down"}
    direction = ways.get(word) or (word if word in ("up", "down") else value)
    kinds = {"black-hole": "black-hole", "link": "down", "withdrawn": "one-sided"}
    if word in kinds:
        return direction, kinds[word]
    if word.endswith("loss"):
        return direction, {"loss": float(value.rstrip("%")) / 100}
    return direction, None


def events(run):
    """Every event as it was recorded, in its shortest spelling."""
    for line in (run / "events.jsonl").read_text().splitlines():
        yield compact(json.loads(line))


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for run in map(Path, sys.argv[1:]):
        target = pack(run, json.loads((run / TRUTH).read_text()))
        print(f"{target.stat().st_size / 1024:.0f} KiB {target}")


if __name__ == "__main__":
    main()
