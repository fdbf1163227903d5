"""How often the demo's verdict is its truth: r2h3 slow, uplinks 4:1, nothing else."""

import json
import subprocess
import sys

from bounds import in_words
from common import CouldNotRun, Table, call, machine, main, met, note, setting

# What a run with its lab may take.
LIMIT_S = 400
HOG_SHARE = 0.3
SLOW_HOST = "r2h3"
RATIO = 4.0


def measure(work):
    print(machine())
    runs = setting("DEMO_RUNS", 50)
    right = {False: [], True: []}
    for number in range(runs):
        is_beside_hog = number % 2 == 1
        answer = run_once(work, is_beside_hog)
        wrong = what_is_wrong(answer)
        right[is_beside_hog].append(not wrong)
        note(f"run {number + 1} of {runs}{', next to a hog' if is_beside_hog else ''}: {wrong or 'right'}")
    show(right)


def run_once(work, is_beside_hog):
    hog = start_hog() if is_beside_hog else None
    try:
        done = call(["demo", "--format", "json", "--runs-dir", str(work.dir / "runs")], LIMIT_S)
    finally:
        if hog:
            hog.kill()
            hog.wait()
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise CouldNotRun(f"eastwest demo: {done.stderr.strip()}") from None


def start_hog():
    """A process that is busy for that share of every tenth of a second, and ends by itself after the longest run."""
    busy = f"""
import time
end = time.monotonic() + {LIMIT_S}
while time.monotonic() < end:
    begin = time.monotonic()
    while time.monotonic() < begin + 0.1 * {HOG_SHARE}:
        pass
    time.sleep(0.1 * (1 - {HOG_SHARE}))
"""
    return subprocess.Popen([sys.executable, "-c", busy])


def what_is_wrong(answer):
    """Words, or nothing."""
    hosts = answer["run"]["inventory"]["hosts"]
    accusing = [finding for finding in answer["verdict"]["findings"] if finding["severity"] != "info"]
    slow = [f for f in accusing if f["subject"]["type"] == "host" and hosts[f["subject"]["host"]]["name"] == SLOW_HOST]
    uplinks = [f for f in accusing if f["cause"] == "uplink"]
    others = [f["sentence"] for f in accusing if f not in slow and f not in uplinks]
    wrong = [] if slow else [f"{SLOW_HOST} is not named"]
    ratios = [f["measured"]["value"] for f in uplinks]
    if not ratios or any(abs(ratio / RATIO - 1) > 0.05 for ratio in ratios):
        wrong.append(f"ratios {ratios or 'none'}")
    return "; ".join([*wrong, *others])


def show(right):
    table = Table(f"eastwest demo: {SLOW_HOST} and {RATIO:.0f}:1 and nothing else", "runs", "right (95% bounds)", "bar", "")
    for name, answers in {"alone": right[False], "next to a CPU hog at 30%": right[True], "all": right[False] + right[True]}.items():
        if answers:
            table.add(name, in_words(sum(answers), len(answers)), "all", met(all(answers)))
    table.show()


main(measure)
