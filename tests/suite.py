"""What the suites against real systems share: what a test may expect, and the tests of a suite one by one in a system that is up.

Suites run at the same time (tests/all), and mostly wait. A test marked `@measures` compares rates with a known truth, and has the CPUs for itself: such
tests come last, one by one, when no suite has others left, so that nobody waits for the end of a long one."""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time

ATTEMPTS = 3
# As in `cargo xtask test`: what fails twice has failed, and more failures than accidents
# explain are not tried again.
ACCIDENTS = 3
LOCKS = pathlib.Path.home() / ".cache/eastwest"


class Inaccurate(AssertionError):
    """A rate off the known truth, as happens when something else takes the CPUs for a while."""


class Skipped(Exception):
    """What this machine cannot show."""


def expect(condition, words):
    if not condition:
        raise AssertionError(words)


def until(seconds, condition, words):
    """What `condition` gives, once that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        expect(time.monotonic() < end, f"not within {seconds} s: {words}")
        time.sleep(0.1)
    return found


def measures(test):
    test.measures = True
    return test


def last(test):
    """Its system is not whole again after it."""
    test.last = True
    return test


@contextlib.contextmanager
def cpus(alone):
    """The CPUs, shared with other suites or `alone`."""
    LOCKS.mkdir(parents=True, exist_ok=True)
    with open(LOCKS / "suites.cpus", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def again_if_starved(test, system):
    for attempt in range(1, ATTEMPTS):
        try:
            return test(system)
        except Inaccurate as error:
            print(f"  {test.__name__}: attempt {attempt} of {ATTEMPTS}: {error}", flush=True)
    return test(system)


def outcome_of(test, system):
    try:
        again_if_starved(test, system)
        return "ok"
    except Skipped as reason:
        return f"skipped: {reason}"
    except (AssertionError, subprocess.SubprocessError, StopIteration, ValueError, KeyError) as error:
        return f"FAILED: {type(error).__name__}: {error}"


def run_suite(name, tests, system_up, why_not_here):
    """Runs the tests that the command line names, or all of them, in the system of `system_up(binary)`; exits."""
    # Whoever ends the suite ends the system, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if reason := why_not_here():
        print(f"skipped: {name}: {reason}")
        sys.exit(0)
    wanted = sys.argv[1:]
    if unknown := set(wanted) - {test.__name__ for test in tests}:
        sys.exit(f"{name}: no test is called {', '.join(sorted(unknown))}; there are: {', '.join(test.__name__ for test in tests)}")
    tests = [test for test in tests if not wanted or test.__name__ in wanted]
    measuring, breaking = ([test for test in tests if hasattr(test, mark)] for mark in ("measures", "last"))
    with contextlib.ExitStack() as stack:
        # Systems that come up are nothing to measure next to, either.
        shared = stack.enter_context(contextlib.ExitStack())
        shared.enter_context(cpus(alone=False))
        system = stack.enter_context(system_up(os.environ["EASTWEST"]))
        failed = [test for test in tests if test not in measuring + breaking and not passes(name, test, system)]
        shared.close()
        failed += [test for test in measuring if not passes_alone(name, test, system)]
        failed = failed_again(name, failed, system)
        failed += failed_again(name, [test for test in breaking if not passes_alone(name, test, system)], system)
    if failed:
        print(f"{name}: {len(failed)} of {len(tests)} tests failed", file=sys.stderr)
    sys.exit(1 if failed else 0)


def failed_again(name, failed, system):
    """Those of the failed tests that fail alone, too; all of them where they are too many for accidents."""
    if not 0 < len(failed) <= ACCIDENTS:
        return failed
    print(f"{name}: again, alone: {', '.join(test.__name__ for test in failed)}", flush=True)
    twice = [test for test in failed if not passes_alone(name, test, system)]
    if unsteady := [test.__name__ for test in failed if test not in twice]:
        print(f"{name}: UNSTEADY, passed the second time: {', '.join(unsteady)}", flush=True)
    return twice


def passes_alone(name, test, system):
    with cpus(alone=True):
        return passes(name, test, system)


def passes(name, test, system):
    began = time.monotonic()
    outcome = outcome_of(test, system)
    print(f"{name}: {test.__name__}: {outcome} ({time.monotonic() - began:.1f} s)", flush=True)
    return not outcome.startswith("FAILED")
