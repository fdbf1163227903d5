"""eastwest between the two namespaces, by its real way: launched over ssh, where `tools/ssh` leads into a namespace."""

import shutil

from common import HERE, CouldNotRun, run
from namespaces import FAR, NEAR
from peer_tools import Contender, Missing

SCENARIO = HERE / "one-flow.yaml"


class Ours:
    """Makes contenders of eastwest with settings (`--set KEY=VALUE`, with underscores for hyphens)."""

    def __init__(self, work):
        self.work = work

    def contender(self, name, **settings):
        figures = request_figures if settings.get("workload", "").endswith("rr") else bulk_figures
        return Contender(f"eastwest {name}", lambda pair, seconds: figures(self.flow(pair, seconds, **settings)))

    def flow(self, pair, seconds, **settings):
        """The record of one run's only flow."""
        # Which settings a test takes depends on its workload.
        changes = {"workload": "tcp-stream", "duration": f"{seconds}s"} | settings
        words = [word for key, value in changes.items() for word in ("--set", f"{key.replace('_', '-')}={value}")]
        hosts = ("--fleet", "ssh", "--hosts", f"{NEAR},{FAR}")
        try:
            finished = run(self.work, SCENARIO, *words, *hosts, pair=pair)
            records = finished.records()
        except (CouldNotRun, OSError) as reason:
            raise Missing(str(reason)) from None
        shutil.rmtree(finished.dir, ignore_errors=True)
        for record in records:
            if record["outcome"] == "measured":
                return record
        raise Missing("; ".join(record["outcome"]["missing"]["reason"] for record in records) or "no flow was recorded")


def bulk_figures(record):
    sender, receiver = record["sender"], record["receiver"]
    rate, sent = (end["bytes"] * 8e9 / end["window_ns"] for end in (receiver, sender))
    return {"rate": rate, "sent": sent, "remarks": remarks(record)}


def request_figures(record):
    asking = record["sender"]
    if asking.get("transactions") is None:
        raise Missing("this build does not count transactions")
    figures = {"rate": asking["transactions"] * 1e9 / asking["window_ns"], "remarks": remarks(record)}
    if asking.get("latency"):
        buckets = asking["latency"]["times"]["buckets"]
        figures |= {f"p{share}_ns": quantile(buckets, share / 100) for share in (50, 99)}
    return figures


def remarks(record):
    """How the figures came about, in the engine's words."""
    return sorted({*record["sender"].get("remarks", []), *record["receiver"].get("remarks", [])})


def quantile(buckets, share):
    """The time that a share of a histogram's times does not exceed; buckets are (max time, how many), ascending."""
    rank = max(1, share * sum(count for _, count in buckets))
    for time_ns, count in buckets:
        rank -= count
        if rank <= 0:
            return time_ns
    return None
