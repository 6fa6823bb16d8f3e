"""Which quantile is selected when: log-many levels of halving (H. Kaplan, S. Schnapp, U. Stemmer, ICML 2022).

The root selects one quantile from all records; what lies below the cut goes left, the rest right, and each side is asked for
its own quantiles in the same way, relative to its own records. A level's parts are disjoint, so replacing a record touches
one part twice or two parts once. Everything here is public: levels and fractions, no record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

UNITS = 2**20
"""Fractions are multiples of 1/UNITS, so that rank distances are whole numbers."""


@dataclass(frozen=True)
class Node:
    """Select quantile ``index``, at the fraction ``share``/UNITS of its part's records, at this depth."""

    index: int
    share: int
    depth: int
    left: Node | None = None
    right: Node | None = None

    @property
    def splits(self) -> bool:
        return self.left is not None or self.right is not None

    @property
    def nodes(self) -> Iterator[Node]:
        yield self
        for child in (self.left, self.right):
            if child is not None:
                yield from child.nodes

    @property
    def swing(self) -> Fraction:
        """max(t, 1 − t): how far one record that comes or goes moves a rank distance here."""
        return Fraction(max(self.share, UNITS - self.share), UNITS)


def quantile_tree(levels: tuple[float, ...]) -> Node:
    """As flat as can be; among the flattest, cuts as near to the middle of their part as can be."""
    return _tree(levels, 0, len(levels), Fraction(0), Fraction(1), 0)


def _tree(levels: tuple[float, ...], first: int, last: int, low: Fraction, high: Fraction, depth: int) -> Node:
    most = 2 ** ((last - first).bit_length() - 1) - 1  # quantiles that a side of the flattest tree has room for
    possible = [index for index in range(first, last) if index - first <= most and last - 1 - index <= most]
    fractions = {index: (Fraction(levels[index]) - low) / (high - low) for index in possible}
    index = min(possible, key=lambda one: abs(fractions[one] - Fraction(1, 2)))
    share = min(max(round(fractions[index] * UNITS), 1), UNITS - 1)
    at = Fraction(levels[index])
    return Node(
        index, share, depth,
        _tree(levels, first, index, low, at, depth + 1) if index > first else None,
        _tree(levels, index + 1, last, at, high, depth + 1) if index + 1 < last else None,
    )  # fmt: skip


def level_costs(root: Node) -> tuple[Fraction, ...]:
    """Of each level, the range of its log-ratios in units of η, for one replaced record.

    Inside one part a replacement costs 2; from one part into another it costs 2·swing in each of the two.
    """
    depths = max(node.depth for node in root.nodes) + 1
    costs = []
    for depth in range(depths):
        swings = sorted((node.swing for node in root.nodes if node.depth == depth), reverse=True)
        costs.append(2 * max(Fraction(1), sum(swings[:2], Fraction(0)) if len(swings) > 1 else Fraction(1)))
    return tuple(costs)


def rank_variances(root: Node, weights: tuple[float, ...], count: int) -> list[float]:
    """Of each quantile, the variance of its rank, in records², where records are spread evenly about it: 2/η² of its own,
    and its share of what the cuts around it are off by."""
    found = [0.0] * count

    def visit(node: Node, low: float, high: float) -> None:
        t, own = node.share / UNITS, 2.0 / weights[node.depth] ** 2
        found[node.index] = own + (1.0 - t) ** 2 * low + t**2 * high
        for child, ends in ((node.left, (low, found[node.index])), (node.right, (found[node.index], high))):
            if child is not None:
                visit(child, *ends)

    visit(root, 0.0, 0.0)
    return found
