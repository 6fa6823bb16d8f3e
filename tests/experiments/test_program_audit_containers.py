"""The container attack on the library finds nothing; planted, each way to read a cell by its type is caught."""

import numpy as np
import pandas as pd
import pytest
from experiments.program_audit.containers import ODD_CELLS, audit_reading, container_makers, container_pairs

import onedraw as od
from onedraw import audit, samplers
from onedraw.models.batches import batches
from onedraw.models.responses import Codes

PLAIN = {
    "whole": [1, 0, 1, 1, 0, 1],
    "truth": [True, False, True, True, False, True],
    "texts": ["1", "0", "1", "1", "0", "1"],
}


def codes(classes):
    return Codes(classes).from_values


def numbers(column):
    return np.concatenate(list(batches(column)))


def by_equality(classes):
    """The planted fault: a record is looked up among the labels as its container holds it."""
    table = {label: code for code, label in enumerate(classes)}

    def encode(column):
        return [
            table.get(cell, 0) if isinstance(cell, str | int | float) else 0 for cell in np.asarray(column).tolist()
        ]

    return encode


def by_float(column):
    """The planted fault: whatever float() takes is a number, so "True" is none and True is 1."""

    def one(cell):
        try:
            return float(cell)
        except Exception:
            return np.nan

    return [one(cell) for cell in np.asarray(column).tolist()]


def by_whole_array(column):
    """The planted fault: the column is cast as a whole, and one record decides whether that succeeds."""
    return np.asarray(column, dtype=np.float64)


def by_commonest_row(rows):
    """The planted fault: the commonest length of the rows is the number of columns."""
    lengths = [len(row) for row in rows]
    width = max(set(lengths), key=lambda length: (lengths.count(length), -length))
    return [row if len(row) == width else [np.nan] * width for row in rows]


@pytest.mark.parametrize("plain", PLAIN)
def test_the_attack_finds_nothing_in_the_library(plain):
    pairs = container_pairs(PLAIN[plain])
    assert len(pairs) > 4 * len(container_makers())
    for encode in (codes((0, 1)), codes(("0", "1")), codes(("0", "1", "unknown")), numbers):
        assert audit_reading(encode, pairs) == []


@pytest.mark.parametrize(
    ("encode", "plain"),
    [
        (by_equality((0, 1)), "whole"),
        (by_equality(("0", "1")), "whole"),
        (by_equality((False, True)), "truth"),
        (by_float, "truth"),
        (by_whole_array, "whole"),
    ],
    ids=["labels", "text labels", "truth labels", "numbers", "whole array"],
)
def test_reading_a_cell_by_its_type_is_caught(encode, plain):
    found = audit_reading(encode, container_pairs(PLAIN[plain]))
    assert {difference.where for difference in found} & {"another record's encoding", "outcome"}
    assert any("pandas" in difference.pair or "NumPy" in difference.pair for difference in found)


def test_rows_measured_by_the_commonest_length_are_caught():
    tie = [[1, 2], [1, 2], [3], [3], [3, 4]]
    pairs = [("rows", tie, [*tie[:-1], [3]])]
    found = audit_reading(by_commonest_row, pairs)
    assert [difference.where for difference in found] == ["another record's encoding"]
    model = od.models.Logistic(2, bounds=(0, 9), prior=od.Gaussian(scale=1.0))
    assert audit_reading(lambda rows: model.summarise((rows, [0] * 5)).X, pairs) == []


def test_a_warning_about_a_record_is_caught():
    pairs = [("", np.array([1.0, 2.0]), np.array([1.0, 2j]))]
    found = audit_reading(lambda column: np.asarray(column).astype(float), pairs)
    assert [difference.where for difference in found] == ["warned"]
    assert audit_reading(numbers, pairs) == []


@pytest.mark.parametrize(("fault", "caught"), [(False, False), (True, True)], ids=["the library", "planted"])
def test_from_draws_alone_the_container_attack_breaks_the_promise_where_it_is_planted(fault, caught):
    """Two columns as `read_csv` gives them, one cell apart: any attack tells the faulty program's draws apart."""
    labels = [1] * 32 + [0] * 8
    first, second = pd.Series(labels), pd.Series([*map(str, labels[:-1]), "unknown"])
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-5), n=len(labels))
    read = by_equality((0, 1)) if fault else codes((0, 1))

    def mechanism(data, generator, size):
        law = plan.target(plan.model.summarise(read(data)))
        return samplers.Exact().run(law, samplers.seeded_generator(int(generator.integers(2**60))), size=size).draws

    found = audit.blackbox_lower_bound(
        mechanism, first, second, rounds=4000, delta=1e-5, confidence=0.999999, generator=np.random.default_rng(7)
    )
    assert (found.breaks(plan.guarantee.promise) is not None) is caught


def test_the_odd_cells_are_of_many_types():
    assert len({type(cell) for cell in ODD_CELLS}) >= 13
