"""Wall time, start skew and the controller's own cost."""

from common import HERE, CouldNotRun, Table, machine, main, met, note, setting

MESH_HOSTS = 16

IDLE_S = 60


def measure(work):
    print(machine())
    mesh(work)
    many_hosts(work)
    idle_hosts(work)


def mesh(work):
    table = Table(f"Isolated mesh of {MESH_HOSTS} hosts (2 racks x 8, 50 Mb/s each, 1:1)", "what", "measured", "bar", "")
    note("mesh")
    with work.lab(2, MESH_HOSTS // 2, 50) as lab:
        finished = lab.run("mesh", "--set", "expect.oversubscription=1")
    stage = finished.stage("mesh")
    test = finished.json["run"]["scenario"]["tests"][0]
    cells = finished.json["cells"]
    once = sum(cell["samples"] == 1 and cell["bits_per_sec"] is not None for cell in cells)
    pairs = MESH_HOSTS * (MESH_HOSTS - 1)
    is_whole = once == pairs == len({(cell["src"], cell["dst"]) for cell in cells})
    table.add("ordered pairs measured exactly once", once, pairs, met(is_whole))
    table.add("rounds, repeats of missing flows included", stage["rounds"], "-", "")
    # The bar knows no repeats.
    bar_s = (MESH_HOSTS - 1) * (test["duration_ns"] / 1e9 + 0.3) + 5
    table.add("wall time", f"{finished.wall_s:.1f} s", f"{bar_s:.1f} s", met(finished.wall_s <= bar_s))
    add_skew(table, stage)
    table.show()
    if not is_whole:
        work.keep(finished)


def add_skew(table, stage):
    if stage["start_skew_ns"] is None:
        raise CouldNotRun("the run has no start skew")
    middle, p99, most = (f"{ns / 1e6:.3f} ms" for ns in stage["start_skew_ns"])
    table.add(f"start skew of {stage['flows']} flows, median", middle, "-", "")
    table.add("start skew, 99th percentile", p99, "1 ms", met(stage["start_skew_ns"][1] <= 1_000_000))
    table.add("start skew, max", most, "-", "")


def many_hosts(work):
    racks = setting("BENCH_RACKS", 4)
    hosts = setting("BENCH_HOSTS_PER_RACK", 16)
    budget_s = setting("BENCH_BUDGET_S", 60)
    nic = setting("BENCH_MANY_NIC_MBIT", 20)
    title = f"qualify, {racks} racks x {hosts} hosts ({nic} Mb/s each, 4:1), time budget {budget_s} s"
    table = Table(title, "what", "measured", "bar", "")
    note(f"qualify of {racks * hosts} hosts")
    with work.lab(racks, hosts, nic, 4) as lab:
        finished = lab.run("qualify", "--time-budget", f"{budget_s}s")
    result = finished.json
    status = result["verdict"]["status"]
    table.add("ended", f"{status}, exit {finished.code}", "complete", met(finished.json["run"]["outcome"] == "complete"))
    for stage in result["stages"]:
        words = f"{stage['flows'] - stage['missing']} of {stage['flows']}"
        table.add(f"flows with a figure, {stage['name']}", words, "-", "")
    table.add("wall time", f"{finished.wall_s:.1f} s", "stated", "")
    peak_bytes, cpu_ns = (result["run"][key] for key in ("controller_peak_bytes", "controller_cpu_ns"))
    table.add("controller's peak memory", "-" if peak_bytes is None else f"{peak_bytes / 2**20:.1f} MiB", "stated", "")
    table.add("controller's CPU time", "-" if cpu_ns is None else f"{cpu_ns / 1e9:.2f} s", "stated", "")
    skews = [stage["start_skew_ns"][1] for stage in result["stages"] if stage["start_skew_ns"]]
    table.add("start skew, 99th percentile, worst stage", f"{max(skews, default=0) / 1e6:.3f} ms", "-", "")
    table.add("accused hosts (none is slow)", len(finished.accused()), "0", met(not finished.accused()))
    table.show()
    print(f"  verdict: {result['verdict']['sentence']}")
    for warning in result["warnings"]:
        print(f"  warning: {warning}")
    if any(stage["missing"] for stage in result["stages"]) or finished.accused():
        work.keep(finished)


def idle_hosts(work):
    """One flow of 100 kb/s: all other hosts only keep their links, clocks and samples."""
    racks = setting("BENCH_IDLE_RACKS", 8)
    hosts = setting("BENCH_IDLE_HOSTS_PER_RACK", 32)
    title = f"idle links, {racks} racks x {hosts} hosts for {IDLE_S} s"
    table = Table(title, "what", "measured", "bar", "")
    note(title)
    with work.lab(racks, hosts, 20) as lab:
        finished = lab.run(HERE / "one-flow.yaml", "--set", f"duration={IDLE_S}s", "--set", "rate=100K")
    result = finished.json
    states = [host["state"]["type"] for host in result["hosts"]]
    alive = states.count("alive")
    table.add("agents that were there to the end", f"{alive} of {len(states)}", "all", met(alive == racks * hosts))
    readings = min(len(host["series"]) for host in result["hosts"])
    table.add("spans between samples, fewest of a host", readings, IDLE_S - 2, met(readings >= IDLE_S - 2))
    errors_ns = [host["clock_error_ns"] for host in result["hosts"] if host["clock_error_ns"] is not None]
    table.add("clock error, max", f"{max(errors_ns, default=0) / 1e6:.3f} ms", "-", "")
    table.add("wall time", f"{finished.wall_s:.1f} s", "-", "")
    table.show()
    for warning in result["warnings"]:
        print(f"  warning: {warning}")
    if alive < racks * hosts:
        work.keep(finished)


main(measure)
