"""What a transfer costs, read from outside and the same way for every tool: the CPU time of the threads at both ends, the busy time of
the whole machine, and the bytes that the interface carried, all over the same second in the middle of it."""

import os
import threading
import time
from pathlib import Path

from namespaces import FAR, INTERFACE, NEAR

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# A transfer runs once the interface carries more than this a second; preparations and control traffic carry less.
RUNNING_BYTES = 20e6
LOOK_EVERY_S = 0.05
WORK_NS = 30_000_000
# How the names of eastwest's threads that move bytes begin. Those that open, sample and supervise have others.
ENGINE_THREADS = "stream"


class Snapshot:
    """Counters of one instant."""

    def __init__(self, pair):
        self.at_ns = time.monotonic_ns()
        self.threads = threads_of(pair.pids())
        self.control = threads_of(pair.control_pids())
        self.busy_ns = busy_ns()
        self.bytes = carried(pair)

    def workers(self):
        """Processes that did something worth a reading; a shell's last `sleep` may end at any time."""
        return {pid for (pid, _), (_, ns) in self.threads.items() if ns > WORK_NS}

    def since(self, before):
        """What changed: a dictionary of the figures of the time in between. None when the transfer did not last until now."""
        if not before.workers() <= self.workers():
            return None
        ends = spent(self.threads, before.threads)
        return {
            "wall_ns": self.at_ns - before.at_ns,
            "cpu_ns": sum(ns for _, ns in ends),
            "engine_ns": sum(ns for name, ns in ends if name.startswith(ENGINE_THREADS)),
            "control_ns": sum(ns for _, ns in spent(self.control, before.control)),
            "busy_ns": self.busy_ns - before.busy_ns,
            "bytes": self.bytes - before.bytes,
        }


class Watch(threading.Thread):
    """Takes two snapshots of a transfer: the first `settle_s` after it began, the second `length_s` later."""

    def __init__(self, pair, settle_s, length_s):
        super().__init__(daemon=True)
        self.pair = pair
        self.settle_s = settle_s
        self.length_s = length_s
        self.over = threading.Event()
        self.figures = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def run(self):
        if not self.wait_for_traffic() or self.over.wait(self.settle_s):
            return
        first = Snapshot(self.pair)
        if not self.over.wait(self.length_s):
            self.figures = Snapshot(self.pair).since(first)

    def wait_for_traffic(self):
        before = carried(self.pair)
        while not self.over.wait(LOOK_EVERY_S):
            now = carried(self.pair)
            if now - before > RUNNING_BYTES * LOOK_EVERY_S:
                return True
            before = now
        return False


def per_gb(figures, key):
    """Seconds of CPU per 10^9 bytes carried."""
    return figures[key] / figures["bytes"]


def spent(now, before):
    """(thread's name, ns on a CPU) of each thread in between. Those that ended are not known any more."""
    return [(name, ns - before.get(key, (name, 0))[1]) for key, (name, ns) in now.items()]


def threads_of(pids):
    """(process, thread) -> (name, ns on a CPU since it began)."""
    found = {}
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                root = Path(f"/proc/{pid}/task/{task}")
                ns = int((root / "schedstat").read_text().split()[0])
                found[pid, int(task)] = ((root / "comm").read_text().strip(), ns)
        except (OSError, ValueError, IndexError):
            # It ended while it was looked at.
            continue
    return found


def busy_ns():
    """Of all CPUs since boot: everything but idle and waiting for disks, which are columns 4 and 5 of /proc/stat (proc(5))."""
    columns = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    # Guest time, the last two columns, is part of user and nice already.
    return (sum(columns[:8]) - columns[3] - columns[4]) * TICK_NS


def carried(pair):
    """Bytes that both ends have received, with one header for every packet that the kernel handled as one (at most 64 KiB with GSO)."""
    return pair.received(NEAR) + pair.received(FAR)


def rss_bytes(pid):
    """Peak resident memory of a process (VmHWM, proc(5))."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
