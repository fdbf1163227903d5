"""HDFS where NICs and disks are known: fan-in, a slow disk, and dfsio next to Hadoop's own TestDFSIO."""

import json
import os
import statistics
import sys

from common import HERE, CouldNotRun, Table, binary, machine, main, met, note, setting

sys.path.insert(0, str(HERE.parent.parent / "tests" / "hadoop"))
from cluster import CLIENT_NIC, CLIENTS, DATA_NODE_NIC, DATA_NODES, FULL_JVM, GOODPUT, LAB, URL, cluster_up  # noqa: E402

PARTS = ("fan-in", "disk", "testdfsio")
HOSTS = ("--clients", "ch[1-4]", "--servers", "sh[1-4]")
OPERATIONS = ("write", "read")
RATE_BAR = 0.05
KNEE = 3
# Bytes per second; a DataNode's NIC carries 23.9 MB/s.
SLOW_DISK = 6_000_000
START_UP_BAR = 1 / 5
# The NameNode reserves space for every block in flight, and releases it late where files are overwritten at once.
DISK_MIB = 4000
# Nothing but programs and CPUs limits the comparison of programs.
FAST_LAB = LAB.replace("125M", "10G").replace("200M", "10G").replace("1G", "10G").replace("4G", "40G")


def measure(_):
    print(machine())
    runs = setting("BENCH_RUNS", 10)
    parts = os.environ.get("BENCH_PARTS", ",".join(PARTS)).split(",")
    if "fan-in" in parts or "disk" in parts:
        with cluster_up(binary(), disk_mib=DISK_MIB) as cluster:
            if "fan-in" in parts:
                fan_in(cluster, runs)
            if "disk" in parts:
                slow_disk(cluster, runs)
    if "testdfsio" in parts:
        # Java's own compilers, all of them.
        with cluster_up(binary(), FAST_LAB, SYNCED, jvm=FULL_JVM, disk_mib=DISK_MIB) as cluster:
            cluster.yarn_up(CLIENTS)
            against_testdfsio(cluster, setting("BENCH_TURNS", 9))


# --- fan-in ---


def fan_in(cluster, runs):
    found = [one(cluster, number, runs) for number in range(1, runs + 1)]
    table = Table(f"Fan-in on HDFS, DataNode NICs {DATA_NODE_NIC / 1e6:.0f} Mb/s, 4 clients of {CLIENT_NIC / 1e6:.0f} Mb/s: {runs} runs", "operation", "DataNodes", "truth", "measured", "off at most", "within 5%", "term right")
    for operation in OPERATIONS:
        for nodes in range(len(DATA_NODES), 0, -1):
            points = [point for point in (step_of(result, operation, nodes) for result in found) if point]
            rates = [8 * point["steady_bytes_per_sec"] for point in points if point["steady_bytes_per_sec"]]
            off = [rate / truth(nodes) - 1 for rate in rates]
            inside = sum(abs(one) <= RATE_BAR for one in off)
            right = sum(is_bound_right(point, nodes) for point in points)
            shown = f"{min(rates) / 1e6:.1f} to {max(rates) / 1e6:.1f} Mb/s" if rates else "-"
            worst = f"{max(off, key=abs):+.1%}" if off else "-"
            table.add(operation, nodes, f"{truth(nodes) / 1e6:.1f} Mb/s", shown, worst, f"{inside} of {runs}", f"{right} of {runs}")
    table.show()
    bars = Table("Bars of the fan-in", "claim", "runs", "bar", "")
    bar(bars, "read: every step within 5% of min(clients, nodes x 191.3 Mb/s)", sum(all_close(result) for result in found), runs)
    bar(bars, f"read: knee at {KNEE} +-1", sum(is_knee_right(result) for result in found), runs)
    bar(bars, "read: the binding term right at every step", sum(all_bound_right(result) for result in found), runs)
    bar(bars, "a rate of all workers at every step", sum(all_have_rates(result) for result in found), runs)
    bars.show()


def one(cluster, number, runs):
    # One file a worker, which stays with its DataNode: workers whose files are on several all wait for the one that has most of them,
    # while others are idle, and random placement is never even.
    files = ["--parallel", "16", "--files", "64", "--time", "5s", "--file-size", "2MiB", "--block-size", "2MiB", "--replication", "1"]
    result = fan_in_run(cluster, *files)
    rates = {point["endpoints"]: round(8 * (point["steady_bytes_per_sec"] or 0) / 1e6, 1) for point in (operation_of(result, "read") or {"points": []})["points"]}
    note(f"fan-in {number} of {runs}: read Mb/s by DataNodes {rates}, load {os.getloadavg()[0]:.0f}")
    return result


def fan_in_run(cluster, *words):
    done = cluster.run("fan-in", "--target", f"{URL}/", "--dfs-hosts", cluster.hosts_file, *HOSTS, *words, limit=600)
    if done.returncode != 0:
        failures = [failure for one in done.result.get("steps", []) for failure in one["failures"]]
        note(f"exit {done.returncode}: {failures[:2]} {done.stderr.strip()[-300:]}")
    return done.result


def truth(nodes):
    return min(len(CLIENTS) * CLIENT_NIC, nodes * DATA_NODE_NIC) * GOODPUT


def operation_of(result, operation):
    return next((found for found in result.get("fan_in", []) if found["operation"] == operation), None)


def step_of(result, operation, nodes):
    points = (operation_of(result, operation) or {"points": []})["points"]
    return next((point for point in points if point["endpoints"] == nodes), None)


def reads(result):
    return {nodes: step_of(result, "read", nodes) for nodes in range(1, len(DATA_NODES) + 1)}


def is_close(point, nodes):
    rate = point and point["steady_bytes_per_sec"]
    return bool(rate) and abs(8 * rate / truth(nodes) - 1) <= RATE_BAR


def is_bound_right(point, nodes):
    side = "storage-node-nic" if nodes * DATA_NODE_NIC < len(CLIENTS) * CLIENT_NIC else "clients"
    binding = point and point["binding"]
    return bool(binding) and binding["binds"] and binding["lowest"]["side"] == side


def all_close(result):
    return all(is_close(point, nodes) for nodes, point in reads(result).items())


def all_bound_right(result):
    return all(is_bound_right(point, nodes) for nodes, point in reads(result).items())


def all_have_rates(result):
    points = [step_of(result, operation, nodes) for operation in OPERATIONS for nodes in range(1, len(DATA_NODES) + 1)]
    return all(point and point["steady_bytes_per_sec"] for point in points)


def is_knee_right(result):
    fit = (operation_of(result, "read") or {}).get("fit")
    return bool(fit and fit["knee"]) and abs(fit["knee"]["nodes"] - KNEE) <= 1


def bar(table, claim, count, runs):
    table.add(claim, f"{count} of {runs}", f"{runs} of {runs}", met(count == runs))


# --- a slow disk ---


def slow_disk(cluster, runs):
    if not cluster.can_throttle():
        raise CouldNotRun("disks cannot be throttled here: that needs loop devices and blkio of cgroup v1")
    own = cluster.own_disks()
    # Long files next to what sockets and DataNodes hold, in blocks so short that the NameNode spreads them.
    files = ["--parallel", "2", "--files", "8", "--file-size", "16MiB", "--block-size", "2MiB", "--replication", "1", "--storage-nodes", "2,1", "--disk", own]
    named = {operation: 0 for operation in OPERATIONS}
    reached = {operation: [] for operation in OPERATIONS}
    for number in range(1, runs + 1):
        with cluster.slow_disks(SLOW_DISK):
            result = fan_in_run(cluster, *files)
        for operation in OPERATIONS:
            bindings = [point["binding"] for point in (operation_of(result, operation) or {"points": []})["points"]]
            known = [binding for binding in bindings if binding]
            named[operation] += len(known) == 2 and all(b["binds"] and b["lowest"]["side"] == "disk" for b in known)
            reached[operation] += [binding["reached"] for binding in known]
        note(f"slow disk {number} of {runs}: named so far {named}, load {os.getloadavg()[0]:.0f}")
    table = Table(f"Disks of {SLOW_DISK / 1e6:.0f} MB/s behind NICs of 23.9 MB/s, 2 and 1 DataNodes: {runs} runs", "operation", "reached of the disk alone", "disk named at both steps", "bar", "")
    for operation in OPERATIONS:
        shares = reached[operation]
        shown = f"{min(shares):.0%} to {max(shares):.0%}" if shares else "-"
        table.add(operation, shown, f"{named[operation]} of {runs}", f"{runs} of {runs}", met(named[operation] == runs))
    table.show()


# --- next to Hadoop's own TestDFSIO ---


# dfsio's client has each block synced to disk at its end; DataNodes do it for TestDFSIO's, too.
SYNCED = {"dfs.datanode.synconclose": "true"}
# HDFS's default.
BLOCKS = ["--replication", "1", "--block-size", "128MiB"]
# Nor does TestDFSIO look at what it reads; both clients compute its checksums.
LIKE_TESTDFSIO = [*BLOCKS, "--no-verify"]
# One file, so that one worker and one map task are at work whatever starts when; and many, which share the CPUs as far as they overlap.
ALONE = ("1 file of 512 MiB", ["--clients", "ch1"], ["--files", "1", "--file-size", "512MiB", "--parallel", "1"])
MANY = ("8 files of 64 MiB, 2 at once on each of 4 hosts", ["--clients", "ch[1-4]"], ["--files", "8", "--file-size", "64MiB", "--parallel", "2"])
TOOLS = ("dfsio", "testdfsio")
FIGURES = ("Throughput mb/sec", "Test exec time sec")


def against_testdfsio(cluster, turns):
    table = Table(f"dfsio next to Hadoop's TestDFSIO on YARN, medians of turns: {turns} of one file, {max(turns // 3, 1)} of many", "files", "figure", "dfsio", "TestDFSIO", "ratio within a turn", "from, to", "bar", "")
    for files, clients, words in (ALONE, MANY):
        # The bar is that of large files. Many share the CPUs, and TestDFSIO's tasks hardly overlap.
        has_bar = files == ALONE[0]
        figures, start_ups = in_turns(cluster, turns if has_bar else max(turns // 3, 1), [*clients, "--servers", "sh[1-4]", *words])
        for operation in OPERATIONS:
            for index, name in enumerate(FIGURES):
                of_tool = {tool: [figure[index] for figure in figures[tool][operation]] for tool in TOOLS}
                ratio, row = compared(of_tool)
                bar_words, is_met = ("at least 1.0", met(ratio >= 1)) if has_bar and index == 0 else ("-", "")
                table.add(files, f"{operation}: {name}", *row, bar_words, is_met)
        ratio, row = compared(start_ups)
        table.add(files, "start-up, s", *row, "at most 0.2", met(ratio <= START_UP_BAR))
    table.show()


def compared(of_tool):
    """The median of the turns' ratios, and a row's cells: both medians, that ratio, and the range of the ratios. What a machine does in one
    turn it does to both."""
    ours, theirs = (of_tool[tool] for tool in TOOLS)
    ratios = [one / other for one, other in zip(ours, theirs)]
    ratio = statistics.median(ratios)
    return ratio, [f"{statistics.median(ours):.2f}", f"{statistics.median(theirs):.2f}", f"{ratio:.2f}", f"{min(ratios):.2f}, {max(ratios):.2f}"]


def in_turns(cluster, turns, words):
    """The same files by the same hosts, in turns: figures of each operation, and start-ups. TestDFSIO's time to its first map task is read from its log, ours from the run's record."""
    figures = {name: {operation: [] for operation in OPERATIONS} for name in TOOLS}
    start_ups = {name: [] for name in TOOLS}
    parallel = words.index("--parallel")
    of_hadoop = words[:parallel] + words[parallel + 2 :]
    for turn in range(1, turns + 1):
        commands = {
            "dfsio": [*words, *LIKE_TESTDFSIO],
            "testdfsio": [*of_hadoop, *BLOCKS, "--hadoop", cluster.hadoop_home],
        }
        # Who comes second finds DataNodes that have compiled more of what they run.
        order = TOOLS if turn % 2 else TOOLS[::-1]
        runs = {name: cluster.run(name, "--target", f"{URL}/", *commands[name], limit=900) for name in order}
        for name, done in runs.items():
            if done.returncode != 0:
                raise CouldNotRun(f"{name}: exit {done.returncode}: {what_failed(done.result)} {done.stderr[-500:]}")
            for step in done.result["steps"]:
                if step["operation"] in OPERATIONS:
                    figures[name][step["operation"]].append((step["dfsio"]["throughput_mb_per_sec"], step["exec_s"]))
        start_ups["dfsio"].append(own_start_up(cluster, runs["dfsio"]))
        hadoops = [hadoop_start_up(step) for step in runs["testdfsio"].result["steps"] if step["operation"] in OPERATIONS]
        start_ups["testdfsio"].append(statistics.mean(hadoops))
        shown = ", ".join(f"{operation} {figures['dfsio'][operation][-1][0]:.1f} and {figures['testdfsio'][operation][-1][0]:.1f}" for operation in OPERATIONS)
        note(f"turn {turn} of {turns}: {shown} MB/s, load {os.getloadavg()[0]:.0f}")
    return figures, start_ups


def what_failed(result):
    """Of every step, and of the run."""
    steps = [(step["operation"], step["failures"], step["missing"], step["corrupt"]) for step in result.get("steps", [])]
    return f"{[step for step in steps if any(step[1:])]} {result.get('warnings')}"


def own_start_up(cluster, done):
    """From the command to the common start of the first step's workers, agents' launch included."""
    manifest = json.loads((cluster.work / "runs" / done.result["run"] / "run.json").read_text())
    return (done.result["steps"][0]["started_unix_ns"] - manifest["started_unix_ns"]) / 1e9


def hadoop_start_up(step):
    """From the client's start to the running application master, which is before the first map task."""
    phases = step["hadoop"]["phases"]
    return phases["submit_s"] + phases["launch_s"]


main(measure)
