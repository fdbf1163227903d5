"""What reading costs on hosts with many sockets: the samples that agents take during a run, by their own records, and `eastwest top`."""

import json
import statistics
import subprocess
import time

from common import HERE, CouldNotRun, Table, binary, machine, main, met, note, run, setting
from namespaces import FAR, NEAR, Pair

# Of one core, at the default interval of 1 s.
BAR = 0.01
PORT = 7000
# As much as makes an agent look for a socket's owner.
FIRST_BYTES = 100_000
PATIENCE_S = 30

# Takes connections and what comes over them until its end.
SERVER = """
import selectors, socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=4096)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(1 << 16):
            selector.unregister(key.fileobj)
"""

# Opens connections, sends much once, then a little on each, a tenth of them every 100 ms.
CLIENT = """
import socket, sys, time
address = (sys.argv[1], int(sys.argv[2]))
held = [socket.create_connection(address) for _ in range(int(sys.argv[3]))]
for one in held:
    one.sendall(bytes(int(sys.argv[4])))
turn = 0
while True:
    for one in held[turn::10]:
        one.sendall(bytes(100))
    turn = (turn + 1) % 10
    time.sleep(0.1)
"""


def measure(work):
    print(machine())
    sockets = setting("BENCH_SOCKETS", 1000)
    seconds = setting("BENCH_SECONDS", 20)
    title = f"Reading every second for {seconds} s, hosts with {sockets} TCP sockets of others"
    table = Table(title, "who reads", "mean", "max", "lists the sockets", "of one core", "bar", "")
    with Pair(work.dir) as pair:
        hold(pair, sockets)
        note("samples of a run")
        for address, readings in samples(work, pair, seconds).items():
            add(table, f"agent at {address}, in a run", readings)
        note("top")
        add(table, f"top at {NEAR}", top(pair, seconds))
    table.show()


def hold(pair, sockets):
    """Opens connections from one host to the other, and waits until they are there."""
    python = ["python3", "-c"]
    pair.start(FAR, "server", [*python, SERVER, FAR, str(PORT)])
    wait_for("the server", lambda: pair.is_served(FAR, PORT))
    pair.start(NEAR, "client", [*python, CLIENT, FAR, str(PORT), str(sockets), str(FIRST_BYTES)])
    wait_for(f"{sockets} connections", lambda: in_use(pair, NEAR) >= sockets and in_use(pair, FAR) >= sockets)


def in_use(pair, address):
    """TCP sockets, by /proc/net/sockstat."""
    line = next(line for line in pair.net(address, "sockstat").splitlines() if line.startswith("TCP:"))
    return int(line.split()[2])


def wait_for(what, is_there):
    give_up = time.monotonic() + PATIENCE_S
    while not is_there():
        if time.monotonic() > give_up:
            raise CouldNotRun(f"{what}: not there after {PATIENCE_S} s")
        time.sleep(0.1)


def samples(work, pair, seconds):
    """The cost of every sample in a run of one slow flow, by host."""
    hosts = ("--fleet", "ssh", "--hosts", f"{NEAR},{FAR}")
    settings = ("--set", f"duration={seconds}s", "--set", "total-rate=10M")
    finished = run(work, HERE / "one-flow.yaml", *settings, *hosts, pair=pair)
    found = {}
    for line in (finished.dir / "events.jsonl").read_text().splitlines():
        event = json.loads(line)["event"]
        if event["type"] == "host-sampled":
            name = finished.host_name(event["data"]["host"])
            sample = event["data"]["sample"]
            found.setdefault(name, []).append(sample)
    return {name: list(map(reading, taken, taken[1:])) for name, taken in found.items()}


def reading(before, sample):
    """(CPU time, time since the reading before, whether it lists the sockets); a first one's work is done once."""
    has_looked = sample["causes"]["traffic_ns"] != before["causes"]["traffic_ns"]
    return sample["cost"]["cpu_ns"], sample["agent_ns"] - before["agent_ns"], has_looked


def top(pair, seconds):
    words = [binary(), "top", "--json", "--duration", f"{seconds}s"]
    done = subprocess.run(
        pair.command(pair.namespace(NEAR), words), capture_output=True, text=True, timeout=seconds + PATIENCE_S, check=False
    )
    if done.returncode != 0:
        raise CouldNotRun(f"eastwest top: {done.stderr.strip()}")
    views = [json.loads(line) for line in done.stdout.splitlines()]
    return [(view["own_cpu_share"] * view["interval_ns"], view["interval_ns"], True) for view in views]


def add(table, who, readings):
    if not readings:
        raise CouldNotRun(f"{who}: no reading was recorded")
    costs_ns, times_ns, looks = zip(*readings)
    share = sum(costs_ns) / sum(times_ns)
    mean, most = (f"{ns / 1e6:.2f} ms" for ns in (statistics.mean(costs_ns), max(costs_ns)))
    often = f"{sum(looks)} of {len(looks)} times"
    table.add(who, mean, most, often, f"{share:.2%}", f"{BAR:.0%}", met(share < BAR))


main(measure)
