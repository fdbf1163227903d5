"""The peers: how each one is started, asked and read. A client's figure is a dictionary: `rate` in bits or transactions per second, times
in ns. Where a tool says what the receiver got, that is its rate."""

import json
import re
import shutil
import subprocess
import time

from common import HERE, CouldNotRun
from namespaces import FAR, NEAR

# The same request and response everywhere: sockperf's least is 14 bytes.
MESSAGE_BYTES = 64
BULK_BYTES = 128 * 1024
SERVER_LIMIT_S = 5


class Missing(Exception):
    """A figure is not to be had here: the row says why and the others go on."""


class Tool:
    """A tool's server on one side and its client, run from the other. `name` distinguishes versions."""

    def __init__(self, name, program, server, port):
        self.name = name
        self.program = program
        self.server = server
        self.port = port

    def ask(self, pair, words, limit_s):
        """Runs the client; gives what it said."""
        self.serve(pair)
        try:
            done = subprocess.run(
                pair.command(pair.namespace(NEAR), [self.program, *words]),
                capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Missing(f"{self.name}: not within {limit_s} s") from None
        if done.returncode != 0:
            raise Missing(f"{self.name}: {(done.stderr.strip() or done.stdout.strip())[-200:]}")
        return done.stdout

    def serve(self, pair):
        # A server that became a daemon has left its first process, so listening counts, not living.
        if pair.is_served(FAR, self.port):
            return
        pair.start(FAR, self.name, [self.program, *self.server])
        deadline = time.monotonic() + SERVER_LIMIT_S
        while not pair.is_served(FAR, self.port):
            if time.monotonic() > deadline:
                raise Missing(f"{self.name}: its server does not listen on port {self.port}")
            time.sleep(0.05)


class Contender:
    """One tool in one mode: `run(pair, seconds)` gives its figures or raises `Missing`."""

    def __init__(self, name, run):
        self.name = name
        self.run = run


class Peers:
    """What is on PATH, and what flags named (`iperf3=/opt/iperf3/bin/iperf3`)."""

    def __init__(self, named, ceiling):
        self.ceiling_tool = Tool("raw C", str(ceiling), ["serve", "7000"], 7000)
        self.named = named
        self.iperf3s = [
            Tool(name, program, ["-s", "-p", str(port)], port)
            for port, (name, program) in enumerate(self.versions_of_iperf3(), 5300)
        ]

    def versions_of_iperf3(self):
        """(name, program), the stock one first: the bars are against it."""
        programs = ["/usr/bin/iperf3", shutil.which("iperf3")] + [path for name, path in self.named if name == "iperf3"]
        found = {}
        for program in programs:
            if program is not None and shutil.which(program) is not None:
                said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
                found.setdefault(f"iperf3 {said[1]}" if len(said) > 1 else program, program)
        return list(found.items())

    def one(self, name, server, port):
        """A tool of which there is one version."""
        paths = [path for tool, path in self.named if tool == name]
        return Tool(name, paths[-1] if paths else name, server, port)

    def iperf3(self, mode, *words, read):
        def contender(tool):
            def run(pair, seconds):
                common = ("-c", FAR, "-p", str(tool.port), "-t", str(seconds), "-J")
                return read(json.loads(tool.ask(pair, (*common, *words), seconds + 15)))

            return Contender(f"{tool.name}{mode}", run)

        return [contender(tool) for tool in self.iperf3s]

    def netperf(self, test, *words, options=()):
        server = Tool("netperf", "netserver", ["-D", "-4", "-p", "12865"], 12865)
        client = self.one("netperf", [], 12865)
        is_bulk = "STREAM" in test or "SENDFILE" in test

        def run(pair, seconds):
            server.serve(pair)
            units = ("-f", "m") if is_bulk else ()
            asked = ("-H", FAR, "-p", "12865", "-4", "-l", str(seconds), "-P", "0", "-t", test, *units, *options, "--", *words)
            said = client.ask(pair, asked, seconds + 15).split()
            # The columns of its banner: sizes and time come before the figure.
            return {"rate": float(said[4]) * 1e6} if is_bulk else {"rate": float(said[5])}

        return Contender(f"netperf {test}", run)

    def nuttcp(self):
        tool = self.one("nuttcp", ["-S", "-P5600"], 5600)

        def run(pair, seconds):
            said = tool.ask(pair, (f"-T{seconds}", f"-l{BULK_BYTES}", "-fparse", "-P5600", "-p5601", FAR), seconds + 15)
            return {"rate": number(r"rate_Mbps=([\d.]+)", said) * 1e6}

        return Contender("nuttcp", run)

    def iperf2(self):
        tool = self.one("iperf", ["-s", "-p", "5700"], 5700)

        def run(pair, seconds):
            said = tool.ask(pair, ("-c", FAR, "-p", "5700", "-t", str(seconds), "-l", "128K", "-y", "C"), seconds + 15)
            return {"rate": float(said.strip().split(",")[-1])}

        return Contender("iperf 2", run)

    def qperf(self, test):
        tool = self.one("qperf", ["--listen_port", "5900"], 5900)

        def run(pair, seconds):
            size = BULK_BYTES if test == "tcp_bw" else MESSAGE_BYTES
            said = tool.ask(pair, ("--listen_port", "5900", "-t", str(seconds), "-uu", "-m", str(size), FAR, test), seconds + 15)
            if test == "tcp_bw":
                return {"rate": number(r"bw += +([\d.]+) bytes/sec", said) * 8}
            # It reports half of the round trip.
            return {"rate": 1e9 / (2 * number(r"latency += +([\d.]+) ns", said))}

        return Contender(f"qperf {test}", run)

    def sockperf(self, *protocol):
        name = f"sockperf {' '.join(('ping-pong', *protocol))}"
        port = 5800 if protocol else 5801
        # Its UDP server listens for nothing that can be seen, so a TCP server of the same program shows when it is there.
        tool = self.one("sockperf", ["server", "--tcp", "-i", FAR, "-p", "5800"], 5800)

        def run(pair, seconds):
            if not protocol:
                pair.start(FAR, name, [tool.program, "server", "-i", FAR, "-p", str(port)])
            asked = ("ping-pong", *protocol, "-i", FAR, "-p", str(port), "-m", str(MESSAGE_BYTES), "-t", str(seconds), "--full-rtt")
            said = tool.ask(pair, asked, seconds + 15)
            times = {f"p{share:.0f}_ns": number(rf"percentile {share:.3f} = +([\d.]+)", said) * 1e3 for share in (50, 99)}
            valid = re.search(r"\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=\d+; ReceivedMessages=(\d+)", said)
            if valid is None:
                raise Missing(f"{name}: {said[-200:]}")
            return {"rate": float(valid[2]) / float(valid[1]), **times}

        return Contender(name, run)

    def ceiling(self, mode, size, clients=1):
        """The raw loop; with several clients, their sum."""

        def run(pair, seconds):
            self.ceiling_tool.serve(pair)
            words = [self.ceiling_tool.program, "load", mode, FAR, "7000", str(seconds), str(size)]
            command = pair.command(pair.namespace(NEAR), words)
            loads = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
            try:
                said = [load.communicate(timeout=seconds + 15)[0] for load in loads]
            except subprocess.TimeoutExpired:
                raise Missing(f"raw C {mode}: not within {seconds + 15} s") from None
            finally:
                for load in loads:
                    load.kill()
            figures = [[float(word) for word in words.split()] for words in said]
            times = dict(zip(("p50_ns", "p99_ns"), figures[0][1:]))
            return {"rate": sum(rate for rate, *_ in figures), **times}

        return Contender(f"raw C {mode}{f' x {clients}' if clients > 1 else ''}", run)

    def raw_pace(self, bits_per_sec, read):
        """The raw loop that sleeps until a send is due."""

        def run(pair, seconds):
            words = ("pace", FAR, "7000", str(seconds), str(bits_per_sec))
            return read([float(word) for word in self.ceiling_tool.ask(pair, words, seconds + 15).split()])

        return Contender("raw C pace", run)


def compile_ceiling(into):
    """The raw loops, by the system's compiler."""
    program = into / "ceiling"
    try:
        done = subprocess.run(["cc", "-O2", "-o", program, HERE / "ceiling.c"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CouldNotRun("`cc` is missing: install gcc (scripts/setup.sh)") from None
    if done.returncode != 0:
        raise CouldNotRun(f"the raw loops do not compile: {done.stderr.strip()}")
    return program


def received(result):
    """iperf3's TCP rate at the receiver."""
    return {"rate": result["end"]["sum_received"]["bits_per_second"]}


def datagrams_received(result):
    """iperf3's UDP rate at the receiver, and the sender's. Versions before 3.10 have no figure of the receiver's own."""
    end = result["end"]
    if "sum_received" not in end:
        sent = end["sum"]["bits_per_second"]
        return {"rate": sent * (1 - end["sum"]["lost_percent"] / 100), "sent": sent}
    return {"rate": end["sum_received"]["bits_per_second"], "sent": end["sum_sent"]["bits_per_second"]}


def number(pattern, text):
    found = re.search(pattern, text)
    if found is None:
        raise Missing(f"nothing like {pattern} in: {text.strip()[-200:]}")
    return float(found[1])
