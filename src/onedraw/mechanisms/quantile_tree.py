"""Which quantile is selected when: log-many levels of halving (H. Kaplan, S. Schnapp, U. Stemmer, ICML 2022).

The root selects one quantile from all records; what lies below the cut goes left, the rest right, and each side is asked for
its own quantiles in the same way. A part of s records between the levels a and b is asked for the level q at the rank

    s/2 + n·(q − (a + b)/2),

the middle of its own records and a public number. One record more or less moves that rank by a half, so it moves the distance
of any place from it by at most a half, whatever q is. A level's parts are disjoint: replacing a record moves all distances of
one part by at most 1, or those of two by at most ½ each. Everything here is public: levels and shifts, no record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

UNITS = 2**20
"""Levels count in multiples of 1/UNITS, so that rank distances are whole numbers."""


@dataclass(frozen=True)
class Node:
    """Select quantile ``index`` of a part, ``shift``·n/UNITS records beyond the middle of its own, at this depth."""

    index: int
    shift: int
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

    def wanted(self, size: int, n: int) -> int:
        """The rank, in 1/UNITS of a record, asked of a part of ``size`` among ``n`` records."""
        return size * (UNITS // 2) + n * self.shift


def quantile_tree(levels: tuple[float, ...]) -> Node:
    """As flat as can be; among the flattest, cuts as near to the middle of their part as can be."""
    return _tree(levels, 0, len(levels), Fraction(0), Fraction(1), 0)


def _tree(levels: tuple[float, ...], first: int, last: int, low: Fraction, high: Fraction, depth: int) -> Node:
    most = 2 ** ((last - first).bit_length() - 1) - 1  # quantiles that a side of the flattest tree has room for
    possible = [index for index in range(first, last) if index - first <= most and last - 1 - index <= most]
    fractions = {index: (Fraction(levels[index]) - low) / (high - low) for index in possible}
    index = min(possible, key=lambda one: abs(fractions[one] - Fraction(1, 2)))
    shift = round((Fraction(levels[index]) - (low + high) / 2) * UNITS)
    at = Fraction(levels[index])
    return Node(
        index, shift, depth,
        _tree(levels, first, index, low, at, depth + 1) if index > first else None,
        _tree(levels, index + 1, last, at, high, depth + 1) if index + 1 < last else None,
    )  # fmt: skip


def depth_of(root: Node) -> int:
    """How many levels there are."""
    return max(node.depth for node in root.nodes) + 1


def rank_variances(root: Node, weights: tuple[float, ...], count: int) -> list[float]:
    """Of each quantile, the variance of its rank, in records², where records are spread evenly about it: 2/η² of its own,
    and a quarter of what each cut around it has."""
    found = [0.0] * count

    def visit(node: Node, low: float, high: float) -> None:
        found[node.index] = 2.0 / weights[node.depth] ** 2 + (low + high) / 4.0
        for child, ends in ((node.left, (low, found[node.index])), (node.right, (found[node.index], high))):
            if child is not None:
                visit(child, *ends)

    visit(root, 0.0, 0.0)
    return found
