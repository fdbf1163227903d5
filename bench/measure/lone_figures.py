"""Figures with a bar but without a peer: many streams, pacing, and what a run costs in addition to its engine."""

import threading
import time

from common import Table, median, note
from contest import GBPS, SHARE, Contest
from namespaces import FAR, NEAR
from peer_tools import MESSAGE_BYTES, Contender, Missing
from watch import Watch, rss_bytes

STREAMS = 10_000
CONNECT_LIMIT_S = 2
STREAM_LIMIT_BYTES = 16 * 1024
PACES_BITS_PER_SEC = (50_000_000, 1_000_000_000, 10_000_000_000)
PACE_ERROR = 0.01
# Whole seconds are compared, so there must be some.
PACED_SECONDS = 5
OVERHEAD_SHARE = 0.01
OVERHEAD_SECONDS = 10
OVERHEAD_RUNS = 3


def many_streams(bench):
    title = f"{STREAMS:,} concurrent streams"
    ours = bench.ours
    settings = {"workload": "tcp-rr", "message_size": MESSAGE_BYTES, "threads": 2}
    try:
        few, _ = look_while(bench, lambda: ours.flow(bench.pair, bench.seconds, streams=1, **settings))
        many, record = look_while(bench, lambda: ours.flow(bench.pair, bench.seconds, streams=STREAMS, **settings))
    except Missing as reason:
        bench.judgement.without(title, "all served", str(reason))
        return
    took_s = many.took_s(STREAMS)
    is_soon = took_s is not None and took_s <= CONNECT_LIMIT_S
    words = "never complete" if took_s is None else f"{took_s:.2f} s"
    bench.judgement.hold(f"{title}: connected", words, f"<= {CONNECT_LIMIT_S} s", is_soon)
    for address, end in ((NEAR, "requesting"), (FAR, "answering")):
        each = (many.rss[address] - few.rss[address]) / STREAMS
        row = f"{title}: memory a stream, {end} end"
        bench.judgement.hold(row, f"{each / 1024:.1f} KiB", "<= 16 KiB", each <= STREAM_LIMIT_BYTES)
    served = min(sum(stream["bytes"] > 0 for stream in end["streams"]) for end in (record["sender"], record["receiver"]))
    bench.judgement.hold(f"{title}: served in {bench.seconds} s", f"{served:,}", f"{STREAMS:,}", served == STREAMS)


class Look(threading.Thread):
    """Looks at both ends from outside while a run goes on: connections (/proc/net/sockstat) and the peak memory of the agents."""

    def __init__(self, pair):
        super().__init__(daemon=True)
        self.pair = pair
        self.over = threading.Event()
        self.counts = []
        self.rss = {NEAR: 0, FAR: 0}

    def run(self):
        while not self.over.wait(0.02):
            self.counts.append((time.monotonic(), connections(self.pair)))
            if len(self.counts) % 20 == 0:
                self.look_at_memory()

    def look_at_memory(self):
        for address in self.rss:
            try:
                peak = max((rss_bytes(pid) for pid in self.pair.pids_at(address)), default=0)
            except OSError:
                # It ended while it was looked at.
                continue
            self.rss[address] = max(self.rss[address], peak)

    def took_s(self, wanted):
        """From the first of many connections to the last of them."""
        begin = next((at for at, count in self.counts if count > wanted / 100), None)
        end = next((at for at, count in self.counts if count >= wanted), None)
        return None if begin is None or end is None else end - begin


def look_while(bench, work):
    look = Look(bench.pair)
    look.start()
    try:
        result = work()
    finally:
        look.over.set()
        look.join()
    return look, result


def connections(pair):
    """Connections that are there at both ends. The sending end counts those that are still being made."""
    return min(tcp_sockets(pair.net(address, "sockstat")) for address in (NEAR, FAR))


def tcp_sockets(sockstat):
    """In use, of the text of /proc/net/sockstat."""
    lines = (line.split() for line in sockstat.splitlines())
    return next((int(words[2]) for words in lines if words[0] == "TCP:"), 0)


def pacing(bench):
    """The median of the runs' worst seconds. iperf3 and a raw loop are shown for comparison: on a machine that pauses, nobody keeps a pace."""
    for asked in PACES_BITS_PER_SEC:
        title = f"pacing at {GBPS.text(asked)}"

        def read(seconds, asked=asked):
            return {"least": min(seconds), "max": max(seconds), "off": max(abs(rate / asked - 1) for rate in seconds)}

        ours = paced(bench.ours, asked, read)
        raw = bench.peers.raw_pace(asked, read)
        iperf3s = bench.peers.iperf3(f" -b {asked // 1_000_000}M", "-b", str(asked), read=lambda document: read(sent_by_second(document)))
        contest = Contest(f"{title}, {PACED_SECONDS} s, each second", [ours, raw, *iperf3s])
        contest.hold(bench.pair, bench.repeats, PACED_SECONDS)
        contest.show((("least", "slowest second", GBPS), ("max", "fastest second", GBPS), ("off", "farthest off", SHARE)))
        bench.judgement.keep(f"{title}, worst second", contest, ours, iperf3s, raw, "off", SHARE, PACE_ERROR)


def paced(ours, asked, read):
    def run(pair, seconds):
        record = ours.flow(pair, seconds, rate=f"{asked // 1_000_000}M")
        return read(rates_by_second(record["receiver"])) | {"remarks": record["sender"].get("remarks", [])}

    return Contender("eastwest", run)


def sent_by_second(document):
    return [interval["sum"]["bits_per_second"] for interval in document["intervals"]]


def rates_by_second(end):
    """Bits per second over each whole second, from the end's intervals."""
    sums = {}
    for interval in end["intervals"]:
        # An interval begins a little before or after its tenth of a second.
        second = round(interval["offset_ns"] / 1e8) // 10
        size, length_ns = sums.get(second, (0, 0))
        sums[second] = (size + interval["bytes"], length_ns + interval["length_ns"])
    return [size * 8e9 / length_ns for size, length_ns in sums.values() if length_ns > 0.9e9]


def overhead(bench):
    """CPU time of everything in a run but the threads that move bytes, over that of those, in the window of a longer transfer."""
    title = "CPU of sampling and control over the engine's"
    bar = f"< {OVERHEAD_SHARE:.0%}"
    table = Table("Cost of a run besides its engine", "engine's threads", "agents' other threads", "controller", "share")
    shares = []
    for _ in range(OVERHEAD_RUNS):
        try:
            with Watch(bench.pair, 1, OVERHEAD_SECONDS - 2) as watch:
                bench.ours.flow(bench.pair, OVERHEAD_SECONDS)
        except Missing as reason:
            bench.judgement.without(title, bar, str(reason))
            return
        spent = watch.figures
        if spent is None or spent["engine_ns"] == 0:
            bench.judgement.without(title, bar, "the engine's threads were not seen")
            return
        other_ns = spent["cpu_ns"] - spent["engine_ns"]
        shares.append((other_ns + spent["control_ns"]) / spent["engine_ns"])
        words = (f"{spent['engine_ns'] / 1e9:.2f} s", f"{other_ns / 1e6:.1f} ms", f"{spent['control_ns'] / 1e6:.1f} ms")
        table.add(*words, f"{shares[-1]:.2%}")
    table.show()
    bench.judgement.hold(title, f"{median(shares):.2%}", bar, median(shares) < OVERHEAD_SHARE)
