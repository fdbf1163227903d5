"""Contenders in turns, and the judgement of their medians against bars."""

from math import comb

from common import Table, median, met, note
from peer_tools import Missing
from watch import Watch, per_gb

# A bulk transfer's cost is read over this part of it, and from this far into it.
SETTLE_SHARE = 0.2
READ_SHARE = 0.55


class Contest:
    """Every contender's figures, one dictionary a turn, empty where a turn failed. One that could not run has a reason instead and no
    further turns."""

    def __init__(self, title, contenders, is_bulk=False, is_fresh=False):
        self.title = title
        self.contenders = contenders
        # Whether costs are read in mid-transfer.
        self.is_bulk = is_bulk
        # Whether every turn needs hosts that nobody has used.
        self.is_fresh = is_fresh
        self.results = {contender.name: [] for contender in contenders}
        self.missing = {}

    def hold(self, pair, repeats, seconds):
        for turn in range(repeats):
            # Neither the order nor who comes after whom stays the same.
            shift = (turn // 2) % len(self.contenders)
            order = self.contenders[shift:] + self.contenders[:shift]
            for contender in order if turn % 2 == 0 else reversed(order):
                self.take_turn(contender, pair, seconds)
            note(f"{self.title}: turn {turn + 1} of {repeats}")

    def take_turn(self, contender, pair, seconds):
        if contender.name in self.missing:
            return
        figures = {}
        try:
            figures = self.figures_of(contender, pair, seconds)
        except Missing as reason:
            # One failure among turns that went well is a turn less, not a tool less.
            if not any(self.results[contender.name]):
                self.missing[contender.name] = str(reason)
            note(f"{contender.name}: {reason}")
        self.results[contender.name].append(figures)

    def figures_of(self, contender, pair, seconds):
        if self.is_fresh:
            pair.renew()
        if not self.is_bulk:
            return contender.run(pair, seconds)
        with Watch(pair, seconds * SETTLE_SHARE, seconds * READ_SHARE) as watch:
            figures = contender.run(pair, seconds)
        if watch.figures is not None and watch.figures["bytes"] > 0:
            figures["cpu_s_per_gb"] = per_gb(watch.figures, "cpu_ns")
            figures["busy_s_per_gb"] = per_gb(watch.figures, "busy_ns")
        return figures

    def values(self, name, figure):
        found = [figures.get(figure) for figures in self.results.get(name, [])]
        return [value for value in found if value is not None]

    def ratios(self, name, other, figure):
        """Turn by turn, one contender's figure over another's: what a machine does to both in the same turn is not in it."""
        turns = zip(self.results[name], self.results[other])
        both = [(ours.get(figure), theirs.get(figure)) for ours, theirs in turns]
        return [our / their for our, their in both if our is not None and their]

    def best(self, names, figure, lowest=False):
        """(name, median, all values) of the best of some contenders, or None when none has the figure."""
        have = [(name, median(values), values) for name in names if (values := self.values(name, figure))]
        if not have:
            return None
        return min(have, key=lambda it: it[1]) if lowest else max(have, key=lambda it: it[1])

    def show(self, figures):
        """What everybody reached; `figures` are (key, head, unit)."""
        table = Table(self.title, "who", *(head for _, head, _ in figures), "turns", "remarks")
        for name, turns in self.results.items():
            if not any(turns):
                table.add(name, *["-"] * len(figures), 0, in_short(self.missing.get(name, "no figure")))
                continue
            cells = [unit.around(values) if (values := self.values(name, key)) else "-" for key, _, unit in figures]
            remarks = sorted({remark for turn in turns for remark in turn.get("remarks", [])})
            table.add(name, *cells, sum(map(bool, turns)), ", ".join(remarks))
        table.show()


class Unit:
    """How figures are written: divided by a scale, with so many digits."""

    def __init__(self, name, scale=1.0, digits=2):
        self.name = name
        self.scale = scale
        self.digits = digits

    def bare(self, value):
        return f"{value / self.scale:,.{self.digits}f}"

    def text(self, value):
        return f"{self.bare(value)} {self.name}"

    def around(self, values):
        """The median, and min and max."""
        between = f" ({self.bare(min(values))} to {self.bare(max(values))})" if len(values) > 1 else ""
        return f"{self.text(median(values))}{between}"


GBPS = Unit("Gb/s", 1e9)
PER_SECOND = Unit("/s", digits=0)
MICROSECONDS = Unit("us", 1e3, 1)
CPU_PER_GB = Unit("s/GB", digits=3)
SHARE = Unit("%", 1e-2)


class Judgement:
    """The table of the bars. Contests fill it; it is shown when all is done."""

    def __init__(self):
        self.rows = []

    def compare(self, title, contest, ours, peers, figure, unit, bar, lowest=False, ceiling=None):
        """One row: our best mode over the best peer, the median of the turns' ratios, held against the bar (at least it, or at most
        when `lowest`)."""
        our, peer = contest.best(ours, figure, lowest), contest.best(peers, figure, lowest)
        limit = f"{'<=' if lowest else '>='} {bar:.2f}"
        if our is None or peer is None:
            self.without(title, limit, missing_words(contest, ours if our is None else peers))
            return
        ratios = contest.ratios(our[0], peer[0], figure)
        if not ratios:
            self.without(title, limit, "never had a figure in the same turn")
            return
        is_met = median(ratios) <= bar if lowest else median(ratios) >= bar
        top = None if ceiling is None else contest.best([ceiling], figure, lowest)
        to_ceiling = "-" if top is None else f"{around(contest.ratios(our[0], ceiling, figure))} of {unit.text(top[1])}"
        named = f"{title} [{our[0].removeprefix('eastwest ')}]" if len(ours) > 1 else title
        self.rows.append(
            (named, unit.around(our[2]), f"{peer[0]}: {unit.around(peer[2])}", around(ratios), limit, met(is_met), to_ceiling)
        )

    def keep(self, title, contest, ours, peers, ceiling, figure, unit, most):
        """One row: our figure's median, held against a bound of its own; the row also shows the peers' and the raw loop's."""
        our, peer, top = (contest.best(names, figure, lowest=True) for names in ([ours.name], [it.name for it in peers], [ceiling.name]))
        limit = f"<= {unit.text(most)}"
        if our is None:
            self.without(title, limit, missing_words(contest, [ours.name]))
            return
        beside = "-" if peer is None else f"{peer[0]}: {unit.around(peer[2])}"
        self.rows.append((title, unit.around(our[2]), beside, "-", limit, met(our[1] <= most), "-" if top is None else unit.around(top[2])))

    def hold(self, title, words, bar_words, is_met):
        """A row that needs no peer."""
        self.rows.append((title, words, "-", "-", bar_words, met(is_met), "-"))

    def without(self, title, bar_words, reason):
        """A row whose figure is not to be had: neither met nor missed."""
        self.rows.append((title, "-", "-", "-", bar_words, "no figure", in_short(reason)))

    def show(self):
        if not self.rows:
            return
        title = "The bars: medians (min to max), and the median of the turns' ratios to the best peer (95% interval)"
        table = Table(title, "figure", "eastwest", "best peer", "ratio", "bar", "", "raw loop, or why there is no figure")
        for row in self.rows:
            table.add(*row)
        table.show()
        verdicts = [row[5] for row in self.rows]
        print(f"  {len(verdicts)} bars: {', '.join(f'{verdicts.count(word)} {word}' for word in ('met', 'MISSED', 'no figure'))}")


def around(ratios):
    """The median, and between which ratios the true one lies."""
    low, high = median_interval(ratios)
    return f"{median(ratios):.2f} ({low:.2f} to {high:.2f})"


def median_interval(values):
    """Order statistics that hold the median between them in 95% of samples (Conover, Practical Nonparametric Statistics, section 3.2);
    of fewer than six values min and max, which hold it less often."""
    ordered = sorted(values)
    below = 0
    while 2 * sum(comb(len(ordered), k) for k in range(below + 1)) <= 0.05 * 2 ** len(ordered):
        below += 1
    outermost = max(below - 1, 0)
    return ordered[outermost], ordered[-1 - outermost]


def missing_words(contest, names):
    return next((contest.missing[name] for name in names if name in contest.missing), "none of them gave one")


def in_short(reason):
    """The words that matter of an error, on one line."""
    return " ".join(reason.split("error: ")[-1].split())[:90]
