"""Every workload against the tools of the field, between two namespaces, in turns: the table of bars."""

import argparse
import os

from common import CouldNotRun, machine, main, setting
from contest import CPU_PER_GB, GBPS, MICROSECONDS, PER_SECOND, Contest, Judgement
from lone_figures import many_streams, overhead, pacing
from namespaces import Pair
from ours import Ours
from peer_tools import BULK_BYTES, MESSAGE_BYTES, Peers, compile_ceiling, datagrams_received, received

COSTS = (("cpu_s_per_gb", "CPU of both ends", CPU_PER_GB), ("busy_s_per_gb", "CPU of the machine", CPU_PER_GB))
BULK_FIGURES = (("rate", "rate", GBPS), *COSTS)
TIMES = (("p50_ns", "p50", MICROSECONDS), ("p99_ns", "p99", MICROSECONDS))
REQUEST_FIGURES = (("rate", "rate", PER_SECOND), *TIMES)
# netperf's sendfile reads from the start of a file as often as it must; it must hold its ring of sends.
FILE_BYTES = 64 << 20


class Bench:
    """What the rows need."""

    def __init__(self, work, pair, named):
        self.pair = pair
        self.repeats = setting("BENCH_REPEATS", 5)
        self.seconds = setting("BENCH_SECONDS", 2)
        self.ours = Ours(work)
        self.peers = Peers(named, compile_ceiling(work.dir))
        self.judgement = Judgement()
        self.file = work.dir / "sendfile"
        self.file.write_bytes(os.urandom(1 << 20) * (FILE_BYTES >> 20))

    def contest(self, title, ours, peers, ceiling, figures, **ways):
        everyone = [*ours, *peers, *([ceiling] if ceiling else [])]
        contest = Contest(title, everyone, **ways)
        contest.hold(self.pair, self.repeats, self.seconds)
        contest.show(figures)
        return contest

    def rate(self, title, contest, ours, peers, unit, bar, ceiling=None):
        name = ceiling.name if ceiling else None
        self.judgement.compare(title, contest, names(ours), names(peers), "rate", unit, bar, ceiling=name)

    def cost(self, title, contest, ours, peers):
        for key, words, unit in COSTS:
            self.judgement.compare(f"{title}: {words}", contest, names(ours), names(peers), key, unit, 1.0, lowest=True)


def names(contenders):
    return [it.name for it in contenders]


def measure(work):
    named, wanted = arguments()
    print(machine())
    with Pair(work.dir) as pair:
        bench = Bench(work, pair, named)
        try:
            for name in wanted:
                PARTS[name](bench)
        finally:
            # A benchmark that is stopped still says what it knows.
            bench.judgement.show()


def arguments():
    """Peers named by flags, and the parts to measure."""
    parser = argparse.ArgumentParser(prog="bench/peers.sh", description=__doc__)
    parser.add_argument("--peer", action="append", default=[], metavar="TOOL=PROGRAM", help="another iperf3, or another build of a peer")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or some of: {', '.join(PARTS)}")
    given = parser.parse_args()
    for peer in given.peer:
        if "=" not in peer or not os.access(peer.split("=", 1)[1], os.X_OK):
            raise CouldNotRun(f"--peer {peer}: give TOOL=PROGRAM, with a program that can be started")
    for part in given.parts:
        if part not in PARTS:
            raise CouldNotRun(f"{part}: the parts are {', '.join(PARTS)}")
    return [tuple(peer.split("=", 1)) for peer in given.peer], given.parts or list(PARTS)


def tcp_copy(bench):
    peers = bench.peers
    rivals = [*peers.iperf3("", "-l", "128K", read=received), peers.netperf("TCP_STREAM", "-m", "128K", "-M", "128K"), peers.nuttcp()]
    also = [peers.iperf2(), peers.qperf("tcp_bw")]
    ceiling = peers.ceiling("copy", BULK_BYTES)
    ours = [bench.ours.contender("copy, copy")]
    title = "tcp-stream, 1 stream, both ends copying"
    contest = bench.contest(title, ours, [*rivals, *also], ceiling, BULK_FIGURES, is_bulk=True)
    bench.rate(title, contest, ours, rivals, GBPS, 1.0, ceiling)
    bench.cost("both ends copying", contest, ours, [*rivals, *also])


def tcp_less_copying(bench):
    peers = bench.peers
    rivals = [
        peers.netperf("TCP_SENDFILE", "-m", "128K", "-M", "128K", options=("-F", str(bench.file))),
        *peers.iperf3(" -Z", "-Z", "-l", "128K", read=received),
    ]
    delivering = [
        bench.ours.contender("sendfile, copy, 1 MiB", send="sendfile", message_size="1MiB"),
        bench.ours.contender("zerocopy, copy", send="zerocopy"),
    ]
    discarding = [
        bench.ours.contender("copy, discard, 1 MiB", receive="discard", message_size="1MiB"),
        bench.ours.contender("sendfile, discard, 1 MiB", send="sendfile", receive="discard", message_size="1MiB"),
    ]
    ceiling = peers.ceiling("discard", 1 << 20)
    title = "tcp-stream, 1 stream, less copying"
    contest = bench.contest(title, [*delivering, *discarding], rivals, ceiling, BULK_FIGURES, is_bulk=True)
    bench.rate("tcp-stream, 1 stream, delivered to the application", contest, delivering, rivals, GBPS, 1.0)
    bench.cost("delivered, no copy at the sender", contest, delivering, rivals)
    bench.rate("tcp-stream, 1 stream, discard", contest, discarding, rivals, GBPS, 1.25, ceiling)


def tcp_two_streams(bench):
    peers = bench.peers
    rivals = peers.iperf3(" -P 2", "-P", "2", "-l", "128K", read=received)
    two = {"streams": 2, "threads": 2, "receive": "discard", "message_size": "1MiB"}
    ours = [bench.ours.contender(f"2 streams, {send}, discard", send=send, **two) for send in ("copy", "sendfile")]
    ceiling = peers.ceiling("discard", 1 << 20, clients=2)
    title = "tcp-stream, 2 streams on 2 threads, discard"
    contest = bench.contest(title, ours, rivals, ceiling, BULK_FIGURES, is_bulk=True)
    # The bar is against the stock one; newer ones are in the contest's own table.
    bench.rate(title, contest, ours, rivals[:1], GBPS, 3.0, ceiling)


def tcp_rr(bench):
    peers = bench.peers
    size = str(MESSAGE_BYTES)
    netperf = peers.netperf("TCP_RR", "-r", f"{size},{size}")
    sockperf = peers.sockperf("--tcp")
    one = bench.ours.contender("tcp-rr", workload="tcp-rr", message_size=size)
    many = bench.ours.contender("tcp-rr, 64 streams", workload="tcp-rr", message_size=size, streams=64, threads=2)
    ceiling = peers.ceiling("echo", MESSAGE_BYTES)
    title = f"tcp-rr, {size} bytes each way"
    contest = bench.contest(title, [one, many], [netperf, sockperf, peers.qperf("tcp_lat")], ceiling, REQUEST_FIGURES)
    bench.rate("tcp-rr, 1 stream", contest, [one], [netperf], PER_SECOND, 1.0, ceiling)
    bench.rate("tcp-rr, 64 streams, 2 threads", contest, [many], [netperf], PER_SECOND, 3.2, ceiling)
    for key, words, unit in TIMES:
        title = f"tcp-rr, 1 stream, {words}"
        ways = {"lowest": True, "ceiling": ceiling.name}
        bench.judgement.compare(title, contest, names([one]), names([sockperf]), key, unit, 1.05, **ways)


def udp_rr(bench):
    peers = bench.peers
    size = str(MESSAGE_BYTES)
    netperf = peers.netperf("UDP_RR", "-r", f"{size},{size}")
    one = bench.ours.contender("udp-rr", workload="udp-rr", message_size=size)
    ceiling = peers.ceiling("udp-echo", MESSAGE_BYTES)
    rivals = [netperf, peers.sockperf(), peers.qperf("udp_lat")]
    contest = bench.contest(f"udp-rr, {size} bytes each way", [one], rivals, ceiling, REQUEST_FIGURES)
    bench.rate("udp-rr, 1 stream", contest, [one], [netperf], PER_SECOND, 1.0, ceiling)


def tcp_crr(bench):
    peers = bench.peers
    size = str(MESSAGE_BYTES)
    netperf = peers.netperf("TCP_CRR", "-r", f"{size},{size}")
    one = bench.ours.contender("tcp-crr", workload="tcp-crr", message_size=size)
    many = bench.ours.contender("tcp-crr, 32 streams", workload="tcp-crr", message_size=size, streams=32, threads=2)
    ceiling = peers.ceiling("connect", MESSAGE_BYTES)
    contest = bench.contest(f"tcp-crr, {size} bytes each way", [one, many], [netperf], ceiling, REQUEST_FIGURES, is_fresh=True)
    bench.rate("tcp-crr, 1 stream", contest, [one], [netperf], PER_SECOND, 1.0, ceiling)
    bench.rate("tcp-crr, 32 streams, 2 threads", contest, [many], [netperf], PER_SECOND, 2.3, ceiling)


def udp_stream(bench):
    peers = bench.peers
    rivals = peers.iperf3(" -u -b 0", "-u", "-b", "0", "-l", "1448", read=datagrams_received)
    datagrams = {"workload": "udp-stream", "message_size": 1448}
    plain = bench.ours.contender("udp-stream", segmentation="off", **datagrams)
    trains = bench.ours.contender("udp-stream, GSO", segmentation="on", **datagrams)
    figures = (("rate", "received", GBPS), ("sent", "sent", GBPS), *COSTS)
    ceiling = bench.peers.ceiling("flood", 1448)
    contest = bench.contest("udp-stream, as fast as it goes, 1448 bytes", [plain, trains], rivals, ceiling, figures, is_bulk=True)
    for words, ours, bar, top in (("without GSO", plain, 1.5, ceiling), ("with GSO", trains, 8.0, None)):
        bench.rate(f"udp-stream, {words}, received", contest, [ours], rivals[:1], GBPS, bar, top)


PARTS = {
    "copy": tcp_copy,
    "less-copying": tcp_less_copying,
    "two-streams": tcp_two_streams,
    "tcp-rr": tcp_rr,
    "udp-rr": udp_rr,
    "tcp-crr": tcp_crr,
    "udp-stream": udp_stream,
    "many-streams": many_streams,
    "pacing": pacing,
    "overhead": overhead,
}


if __name__ == "__main__":
    main(measure)
