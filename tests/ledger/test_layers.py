"""Dictionaries with cheap snapshots: they answer as plain dictionaries do, and no snapshot sees another's changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onedraw.ledger.layers import Layers

STEPS = st.lists(st.tuples(st.integers(0, 5), st.text("abcd", min_size=1, max_size=2), st.integers()), max_size=60)


@given(STEPS)
def test_layers_with_branches_answer_as_dictionaries(steps: list[tuple[int, str, int]]) -> None:
    pairs: list[tuple[Layers[int], dict[str, int]]] = [(Layers(), {})]
    for chosen, key, value in steps:
        layers, plain = pairs[chosen % len(pairs)]
        # A snapshot that others were branched from is not written to, as in the ledger.
        branch, copied = layers.branch(), dict(plain)
        branch[key] = copied[key] = value
        pairs.append((branch, copied))
    for layers, plain in pairs:
        assert list(layers.items()) == list(plain.items())
        assert len(layers) == len(plain)
        assert "not there" not in layers


def test_layers_after_many_branches_are_few() -> None:
    layers: Layers[int] = Layers()
    for number in range(1000):
        layers = layers.branch()
        layers[f"{number}"] = number
    assert len(layers.branch()._shared) <= 10  # log2(1000)
