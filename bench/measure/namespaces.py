"""Two hosts for a benchmark: network namespaces with a veth pair between them, and a third one, without a network, to start from."""

import os
import subprocess
from pathlib import Path

from common import CouldNotRun

TOOLS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools")

# Reserved for benchmarks (RFC 2544); the machine's own namespace never gets a route to them from here.
NEAR = "198.18.0.1"
FAR = "198.18.0.2"
NETWORK = "198.18.0.0/30"
INTERFACE = "veth0"
# Linux's own default.
CONGESTION = "cubic"
PREFIX = "eastwest-bench-"


class Pair:
    """Namespaces that are there inside the `with` block. Each is named by the pair and its address, as `tools/ssh` expects."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.name = f"{PREFIX}{os.getpid()}"
        self.control = f"{self.name}-control"
        self.processes = {}

    def __enter__(self):
        remove_leftovers()
        try:
            self.build()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def build(self):
        near, far = self.namespace(NEAR), self.namespace(FAR)
        for namespace in (near, far, self.control):
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", near, "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", far)
        for address in (NEAR, FAR):
            namespace = self.namespace(address)
            ip("-n", namespace, "address", "add", f"{address}/30", "dev", INTERFACE)
            ip("-n", namespace, "link", "set", INTERFACE, "up")
            # The same for everybody, whatever the machine's default: BBR paces by timers, which hides what the tools cost.
            ip("-n", namespace, "route", "replace", NETWORK, "dev", INTERFACE, "src", address, "congctl", CONGESTION)
            # Something must live there for /proc to show the namespace's counters.
            self.start(address, "keeper", ["sleep", "infinity"])

    def renew(self):
        """The same hosts as if nothing had happened: without connections that wait to be forgotten (TIME_WAIT), which keep ports."""
        self.remove()
        self.build()

    def remove(self):
        remove([self.namespace(NEAR), self.namespace(FAR), self.control])
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def start(self, address, name, words):
        """Starts what runs until the pair is removed. Does nothing while it runs."""
        running = self.processes.get((address, name))
        if running is not None and running.poll() is None:
            return
        quiet = {stream: subprocess.DEVNULL for stream in ("stdin", "stdout", "stderr")}
        self.processes[address, name] = subprocess.Popen(self.command(self.namespace(address), words), **quiet)

    def net(self, address, file):
        """A file of /proc/net as the namespace has it."""
        return Path(f"/proc/{self.processes[address, 'keeper'].pid}/net/{file}").read_text()

    def received(self, address):
        """Bytes that its interface has received."""
        for line in self.net(address, "dev").splitlines():
            name, _, counters = line.strip().partition(":")
            if name == INTERFACE:
                return int(counters.split()[0])
        raise CouldNotRun(f"{address} has no {INTERFACE}")

    def is_served(self, address, port):
        """Whether something listens there for TCP."""
        listening = (line.split() for file in ("tcp", "tcp6") for line in self.net(address, file).splitlines()[1:])
        return any(words[1].endswith(f":{port:04X}") and words[3] == "0A" for words in listening)

    def namespace(self, address):
        return f"{self.name}-{address}"

    def command(self, namespace, words):
        """The words that run a command inside a namespace; the process is the command's own, without one in between."""
        return ["ip", "netns", "exec", namespace, *words]

    def environment(self):
        """With the ssh that leads into the namespaces before any other; what agents put on disk goes with the scratch directory."""
        path = f"{TOOLS}:{os.environ['PATH']}"
        return {**os.environ, "BENCH_PAIR": self.name, "PATH": path, "TMPDIR": str(self.scratch)}

    def pids(self):
        """Processes at both ends."""
        return [pid for address in (NEAR, FAR) for pid in self.pids_at(address)]

    def control_pids(self):
        """Processes that only steer."""
        return pids_of(self.control)

    def pids_at(self, address):
        return pids_of(self.namespace(address))



def remove(namespaces):
    """Ends what still runs inside, which only a benchmark can have started, and removes the namespaces."""
    for namespace in namespaces:
        for pid in pids_of(namespace):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
    for namespace in namespaces:
        subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL, check=False)


def remove_leftovers():
    """Of benchmarks that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith(PREFIX)]
    remove([name for name in names if not os.path.exists(f"/proc/{name[len(PREFIX):].split('-')[0]}")])


def pids_of(namespace):
    """As `ip netns pids` finds them, without a process of its own that would disturb what is measured."""
    try:
        wanted = os.stat(f"/run/netns/{namespace}").st_ino
    except FileNotFoundError:
        return []
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and network_of(pid) == wanted]


def network_of(pid):
    """Its network namespace's number. None when it has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CouldNotRun(f"ip {' '.join(words)}: {done.stderr.strip()}")
