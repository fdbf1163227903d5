"""Every workload by this build and by an older one, in turns between two namespaces: what became slower."""

import os

from common import CouldNotRun, Table, machine, main, median, setting
from contest import GBPS, PER_SECOND, Contest
from namespaces import Pair
from ours import Ours
from peer_tools import MESSAGE_BYTES, Contender

MESSAGE = {"message_size": MESSAGE_BYTES}
DATAGRAMS = {"workload": "udp-stream", "message_size": 1448}
LARGE = {"message_size": "1MiB"}
# Title, unit of its rate, whether hosts must be fresh, settings.
ROWS = [
    ("tcp-stream, both ends copying", GBPS, False, {}),
    ("tcp-stream, sendfile", GBPS, False, {"send": "sendfile"} | LARGE),
    ("tcp-stream, zerocopy", GBPS, False, {"send": "zerocopy"}),
    ("tcp-stream, discard", GBPS, False, {"receive": "discard"} | LARGE),
    ("tcp-stream, 2 streams, discard", GBPS, False, {"streams": 2, "threads": 2, "receive": "discard"} | LARGE),
    ("tcp-rr", PER_SECOND, False, {"workload": "tcp-rr"} | MESSAGE),
    ("tcp-rr, 64 streams", PER_SECOND, False, {"workload": "tcp-rr", "streams": 64, "threads": 2} | MESSAGE),
    ("udp-rr", PER_SECOND, False, {"workload": "udp-rr"} | MESSAGE),
    ("tcp-crr", PER_SECOND, True, {"workload": "tcp-crr"} | MESSAGE),
    ("tcp-crr, 32 streams", PER_SECOND, True, {"workload": "tcp-crr", "streams": 32, "threads": 2} | MESSAGE),
    ("udp-stream, without GSO", GBPS, False, {"segmentation": "off"} | DATAGRAMS),
    ("udp-stream, GSO", GBPS, False, {"segmentation": "on"} | DATAGRAMS),
]


def measure(work):
    older = os.environ.get("BENCH_OLDER")
    if not older:
        print("BENCH_OLDER names no older eastwest: nothing to compare")
        return
    if not os.access(older, os.X_OK):
        raise CouldNotRun(f"BENCH_OLDER={older}: name an older eastwest that can be started")
    repeats, seconds = setting("BENCH_REPEATS", 9), setting("BENCH_SECONDS", 1)
    print(machine())
    table = Table("this build over the older one", "workload", "this build", "older", "ratio of turns (least to most)", "slower in")
    with Pair(work.dir) as pair:
        builds = {"this build": os.environ["EASTWEST"], "older": older}
        try:
            for title, unit, is_fresh, settings in ROWS:
                contenders = [by_build(Ours(work), name, program, settings) for name, program in builds.items()]
                contest = Contest(title, contenders, is_fresh=is_fresh)
                contest.hold(pair, repeats, seconds)
                add_row(table, contest, unit)
        finally:
            table.show()


def by_build(ours, name, program, settings):
    flow = ours.contender(name, **settings)

    def run(pair, seconds):
        os.environ["EASTWEST"] = program
        return flow.run(pair, seconds)

    return Contender(name, run)


def add_row(table, contest, unit):
    ratios = sorted(contest.ratios("this build", "older", "rate"))
    if not ratios:
        table.add(contest.title, "-", "-", "; ".join(contest.missing.values()) or "no turn of both", "-")
        return
    medians = [unit.text(median(contest.values(name, "rate"))) for name in ("this build", "older")]
    slower = sum(ratio < 1 for ratio in ratios)
    table.add(contest.title, *medians, f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", f"{slower} of {len(ratios)}")


if __name__ == "__main__":
    main(measure)
