"""How sure a share is: exact binomial bounds (Clopper and Pearson, Biometrika 1934)."""

from math import comb


def clopper_pearson(hits, runs, confidence=0.95):
    """Lower and upper bound of the share behind `hits` of `runs`."""
    if runs == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else root(lambda share: at_least(hits, runs, share) - tail)
    high = 1.0 if hits == runs else root(lambda share: tail - at_most(hits, runs, share))
    return low, high


def at_least(hits, runs, share):
    return sum(comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(hits, runs + 1))


def at_most(hits, runs, share):
    return sum(comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(hits + 1))


def root(rising):
    """Where a rising function of a share crosses 0."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low


def in_words(hits, runs):
    low, high = clopper_pearson(hits, runs)
    return f"{hits} of {runs} ({100 * low:.1f} to {100 * high:.1f}%)"
