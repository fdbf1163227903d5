"""The commands that the documentation shows, for the suites that run them, and what is like their shown output."""

import dataclasses
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["docs", "docs/guide", "docs/concepts", "docs/reference", "docs/comparisons"]

# Where a command runs that needs another system than a lab: `tests/SUITE/run` takes it from its
# page.
SUITES = {
    "kubernetes": r"--via kubernetes|eastwest kubernetes|kubectl ",
    "slurm": r"--via slurm|scontrol |salloc ",
    "hadoop": r"hdfs://|dfs\.hosts|size .*--run ",
    "packages": r"^sudo (apt|dnf) install|^tar xzf ",
}
# What no suite runs.
NOT_RUN = {
    r"^make (demo|test|binary|release|faults|sim)\b": "a target of the Makefile: CI's own steps, or hours",
    r"--fleet ssh --hosts 198\.18\.0\.1,": "how a benchmark starts it: bench/",
    r"bench/(measure/faults\.py|scale\.sh)": "a benchmark: `make bench` and `make faults`",
    r"cargo install .*--git": "builds everything from the repository's address, which is not the tree under test",
    r"^duckdb ": "DuckDB's own; the columns' names are checked by ew-store's tests",
    r"^skopeo copy": "needs a registry; tests/kubernetes/run imports the same archive into containerd",
}
# A subcommand or an option of one that a sentence names.
NAMES = re.compile(r"eastwest (run (dfsio|congestion|--web|--push|--metrics)|lab exec|kubernetes guard)")
# Another one's words in a span of code: a form of a command, not a command.
PLACEHOLDER = re.compile(r"\.\.\.|\b[A-Z]{2,}[A-Z:]*(?![\w/=])|\|csv")
# Commands that measure.
MEASURES = r"eastwest (run|pair|mesh|latency|congestion) "
TIMES = {"ns", "us", "µs", "ms", "s"}
RATES = {"kb/s", "Mb/s", "Gb/s"}
SIZES = {"KiB", "MiB", "GiB"}


@dataclasses.dataclass
class Command:
    page: str
    line: int
    text: str
    output: list
    # Of a block, and not a span of code in a sentence or table.
    is_in_block: bool
    # The same as another one, that shows no output either.
    is_again: bool = False

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"

    def plain(self):
        """Without its comment."""
        return re.sub(r"\s+#.*", "", self.text)

    def suite(self):
        """The suite that runs it, or `None` where none does."""
        if any(re.search(pattern, self.text) for pattern in NOT_RUN):
            return None
        found = [suite for suite, pattern in SUITES.items() if re.search(pattern, self.text)]
        return found[0] if found else "docs"


def pages():
    return ["README.md"] + [str(path.relative_to(ROOT)) for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))]


@functools.cache
def commands(suite=None):
    """All commands of all pages, or those that this suite runs."""
    found = [command for page in pages() for command in commands_of(page)]
    in_blocks, known = {command.plain() for command in found if command.is_in_block}, set()
    for command in found:
        text = command.plain()
        is_once = not command.is_in_block or re.match(MEASURES, text) and not command.output
        command.is_again = bool(is_once) and (text in known or not command.is_in_block and text in in_blocks)
        known.add(text)
    return [command for command in found if suite is None or command.suite() == suite]


def commands_of(page):
    found, fence = [], None
    lines = (ROOT / page).read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fence = line.removeprefix("```") or "text" if fence is None else None
        elif fence is None:
            found += [Command(page, number, span, [], False) for span in spans(line)]
        elif fence == "console" and line.startswith("$ "):
            found.append(Command(page, number, line[2:], [], True))
        elif fence == "console" and found and found[-1].is_in_block and found[-1].text.endswith("\\"):
            found[-1].text += "\n" + line
        elif fence == "console" and not line.startswith("# "):
            found[-1].output.append(line)
        elif line.startswith("eastwest "):
            raise ValueError(f"{page}:{number}: a command in a block that is not `console`")
    return found


def spans(line):
    """Commands with their arguments in a sentence or a table; a name alone, as of a subcommand, is none."""
    for span in re.findall(r"`(eastwest [^`]+)`", line):
        if len(span.split()) > 2 and not PLACEHOLDER.search(span) and not NAMES.fullmatch(span):
            yield span.replace("\\|", "|")


def blocks(page, language):
    """The contents of a page's blocks in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def write_program(file, binary):
    """`eastwest` for a page's commands: appends the words of $MORE_WORDS to those that start agents."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\ncase $1 in run|pair|mesh|latency|congestion|doctor|tools) set -- "$@" $MORE_WORDS;; esac\nexec {binary} "$@"\n')
    file.chmod(0o755)


def masked(text):
    """The words, with `#` for every number, `time`, `rate` or `size` for its unit, `RUN` for the name of a run and `URL` for an address with a token: lines
    break elsewhere when figures are longer."""
    return [masked_word(word) for word in text.split()]


def masked_word(word):
    unit = word.rstrip(".,;")
    if "Z-" in word:
        return "RUN"
    if re.match(r"http://[\d.]+:\d+/[0-9a-f.]+/", word):
        return "URL"
    for name, units in {"time": TIMES, "rate": RATES, "size": SIZES}.items():
        if unit in units:
            return name
    return re.sub("─+", "─", re.sub(r"\d[\d.,:–-]*", "#", word))


def is_like(printed, shown):
    """Whether masked words are those of the page, where `...` replaces what it leaves out."""
    if "..." not in shown:
        return printed == shown
    at = shown.index("...")
    head, tail = shown[:at], shown[at + 1 :]
    return printed[:at] == head and any(is_like(printed[start:], tail) for start in range(at, len(printed) + 1))
