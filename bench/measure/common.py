"""What the benchmarks share: labs that always end, runs of the binary, tables."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# TCP payload of a frame at MTU 1500 with time stamps, as Linux queueing disciplines count frames.
EFFICIENCY = 1448 / 1514

# A run that takes longer than this hangs.
RUN_LIMIT_S = 300

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

# Whom a finding may accuse; an uplink is not a host's fault.
ACCUSED = {"host", "pair"}


class CouldNotRun(Exception):
    """Something prevented measuring: the only reason for a benchmark to fail."""


def main(measure):
    """Runs `measure(work)`; ends with 1 when something could not run, never because a bar was missed."""
    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    try:
        require()
        with Work() as work:
            measure(work)
    except CouldNotRun as reason:
        sys.exit(f"could not run: {reason}")


def stop(number, _):
    """Unwinds, so that everything made is removed, which a second signal must not stop."""
    for other in STOP_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def require():
    if os.geteuid() != 0:
        raise CouldNotRun("labs with rates need root")
    for tool in ("ip", "tc"):
        if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            raise CouldNotRun(f"`{tool}` is missing: install iproute2")
    if not os.access(binary(), os.X_OK):
        raise CouldNotRun("EASTWEST does not name the binary: EASTWEST=target/.../eastwest bench/...")


def binary():
    return os.environ.get("EASTWEST", "eastwest")


def setting(name, default):
    """A whole number from the environment."""
    text = os.environ.get(name, str(default))
    if not text.isdigit():
        raise CouldNotRun(f"{name}={text} is not a whole number")
    return int(text)


class Work:
    """A directory for this benchmark's runs. Runs that were kept stay; all else goes."""

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="eastwest-bench-"))
        self.kept = self.dir / "kept"
        self.labs = 0
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir / "runs", ignore_errors=True)
        for file in self.dir.glob("*.yaml"):
            file.unlink()
        if self.kept.exists():
            print(f"\nruns to look into: {self.kept}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def lab(self, racks, hosts_per_rack, nic, oversubscription=1, faults=""):
        self.labs += 1
        return Lab(self, racks, hosts_per_rack, nic, oversubscription, faults)

    def fabric(self, network, faults=""):
        """A lab of other lines than the default ones; `network` has them."""
        self.labs += 1
        return Lab.of_lines(self, network.title, network.lines, faults)

    def keep(self, finished, where=None):
        """Keeps a run."""
        self.kept = where or self.kept
        target = self.kept / finished.dir.name
        if finished.dir.exists() and not target.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            shutil.copytree(finished.dir, target)
        return target


class Lab:
    """An emulated cluster that is up inside its `with` block. `nic` in Mb/s; `faults` as in a lab file's list."""

    def __init__(self, work, racks, hosts_per_rack, nic, oversubscription, faults):
        lines = f"racks: {racks}\nhosts-per-rack: {hosts_per_rack}\nnic: {nic}M\noversubscription: {oversubscription}\n"
        self.set(work, f"{racks} x {hosts_per_rack} at {oversubscription}:1", lines, faults)

    @classmethod
    def of_lines(cls, work, title, lines, faults):
        made = cls.__new__(cls)
        made.set(work, title, lines, faults)
        return made

    def set(self, work, title, lines, faults):
        self.work = work
        self.name = f"b{os.getpid()}-{work.labs}"
        self.title = f"{title}, {faults or 'clean'}"
        self.text = f"name: {self.name}\n{lines}faults: [{faults}]\n"

    def __enter__(self):
        file = self.work.dir / f"{self.name}.yaml"
        file.write_text(self.text)
        up = call(["lab", "up", "-f", str(file)], 60)
        if up.returncode != 0:
            raise CouldNotRun(f"lab up: {up.stderr.strip()}")
        return self

    def __exit__(self, *_):
        down = call(["lab", "down", "--lab", self.name], 60)
        if down.returncode != 0:
            print(f"lab {self.name} did not go down: {down.stderr.strip()}", file=sys.stderr)

    def run(self, scenario, *args):
        return run(self.work, scenario, "--fleet", "lab", "--lab", self.name, *args)

    def topology(self):
        """The network as it is, faults included, every rate spelled out."""
        state = json.loads((Path("/run/eastwest/labs") / self.name / "state.json").read_text())
        return state["current"]["topology"]


def run(work, scenario, *args, pair=None):
    """`eastwest run`, with its result as JSON; started from a pair's control namespace when there is one."""
    runs = work.dir / "runs"
    command = ["run", str(scenario), *args, "--format", "json", "--quiet", "--runs-dir", str(runs)]
    begin = time.monotonic()
    done = call(command, RUN_LIMIT_S, pair)
    wall_s = time.monotonic() - begin
    try:
        result = json.loads(done.stdout)
        run_id = result["run"]["id"]
    except (ValueError, KeyError, TypeError):
        words = done.stderr.strip() or done.stdout.strip()
        raise CouldNotRun(f"eastwest run {scenario}: {words}") from None
    return Finished(result, done.returncode, wall_s, runs / run_id)


def call(args, limit_s, pair=None):
    command = [binary(), *args] if pair is None else pair.command(pair.control, [binary(), *args])
    environment = None if pair is None else pair.environment()
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL, env=environment
        )
    except subprocess.TimeoutExpired:
        raise CouldNotRun(f"eastwest {' '.join(args)}: not within {limit_s} s") from None


class Finished:
    """A run that ended."""

    def __init__(self, result, code, wall_s, directory):
        self.json = result
        self.code = code
        self.wall_s = wall_s
        self.dir = directory

    def stage(self, name):
        for stage in self.json["stages"]:
            if stage["name"] == name:
                return stage
        raise CouldNotRun(f"the run has no stage `{name}`")

    def records(self):
        """Every flow of every round as both ends saw it."""
        lines = (self.dir / "events.jsonl").read_text().splitlines()
        events = (json.loads(line)["event"] for line in lines)
        return [r for event in events if event["type"] == "round-finished" for r in event["data"]["records"]]

    def rack_name(self, number):
        return self.json["run"]["inventory"]["racks"][number]["name"]

    def host_name(self, number):
        return self.json["run"]["inventory"]["hosts"][number]["name"]

    def accused(self):
        """(effect, whom) of every finding against a host or a pair: how it is slow where the finding says so, else the cause."""
        findings = self.json["verdict"]["findings"]
        accusing = [f for f in findings if f["severity"] != "info" and f["subject"]["type"] in ACCUSED]
        return [(f["symptom"] or f["cause"], self.subject(f["subject"])) for f in accusing]

    def subject(self, subject):
        if subject["type"] == "host":
            return self.host_name(subject["host"])
        if subject["type"] == "pair":
            return f"{self.host_name(subject['src'])} to {self.host_name(subject['dst'])}"
        return subject["type"]


class Table:
    """Rows of words in columns; the bar is next to the figure."""

    def __init__(self, title, *head):
        print(f"\n{title}")
        self.rows = [head]

    def add(self, *row):
        self.rows.append(tuple(str(word) for word in row))

    def show(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        for index, row in enumerate(self.rows):
            print("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())
            if index == 0:
                print("  " + "  ".join("-" * width for width in widths))
        sys.stdout.flush()


def met(is_met):
    return "met" if is_met else "MISSED"


def mbps(bits_per_sec):
    return f"{bits_per_sec / 1e6:.1f} Mb/s"


def note(text):
    """Progress, for whoever waits."""
    print(f"  ... {text}", file=sys.stderr, flush=True)


def machine():
    """One line about where this was measured."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    load = Path("/proc/loadavg").read_text().split()[0]
    day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{day}, {os.cpu_count()} cores ({model}), Linux {os.uname().release}, load before {load}"


def median(values):
    return statistics.median(values)
