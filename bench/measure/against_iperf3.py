"""The same flow by two tools, in turns."""

import shutil

from common import EFFICIENCY, HERE, CouldNotRun, Table, machine, main, median, mbps, note, run, setting

SCENARIO = HERE / "one-flow.yaml"


def measure(work):
    if shutil.which("iperf3") is None:
        raise CouldNotRun("`iperf3` is missing: install it")
    print(machine())
    runs = setting("BENCH_RUNS", 5)
    table = Table(
        f"One flow of one stream, 2 s, medians of {runs} runs of each tool in turns",
        *("where", "engine", "iperf3", "ratio", "engine's runs", "iperf3's runs"),
    )
    note("200 Mb/s link")
    with work.lab(1, 2, 200) as lab:
        add(table, f"200 Mb/s link, truth {mbps(200e6 * EFFICIENCY)}", in_turns(runs, lab.run))
    note("loopback")
    local = ("--fleet", "local", "--hosts", "a,b")
    add(table, "loopback, no limit", in_turns(runs, lambda *args: run(work, *args, *local)))
    table.show()


def in_turns(runs, run_once):
    """Rates of each tool, in bits per second."""
    rates = {"engine": [], "iperf3": []}
    for number in range(runs):
        # The first of a turn is not always the same tool.
        for tool in sorted(rates, reverse=number % 2 == 1):
            flow = run_once(SCENARIO, "--tool", tool).stage("flow")["flow_bits_per_sec"]
            if flow is None:
                raise CouldNotRun(f"the flow by {tool} has no rate")
            rates[tool].append(flow["value"])
    return rates


def add(table, where, rates):
    middles = {tool: median(values) for tool, values in rates.items()}
    ratio = middles["engine"] / middles["iperf3"]
    all_of = {tool: " ".join(f"{value / 1e6:.0f}" for value in values) for tool, values in rates.items()}
    table.add(where, mbps(middles["engine"]), mbps(middles["iperf3"]), f"{ratio:.3f}", all_of["engine"], all_of["iperf3"])


main(measure)
