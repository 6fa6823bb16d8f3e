"""Rows as records: one that is odd is a record of missing cells, or of its cells, and no code of its own class is run."""

import numpy as np
import pytest

from onedraw.models.batches import batches, row_batches
from onedraw.models.features import Features, read_rows
from tests.odd_objects import Pretender, dead_reference


class Rows(list):
    def __iter__(self):
        raise RuntimeError

    __len__ = __getitem__ = __eq__ = __iter__


class Pair(tuple):
    def __iter__(self):
        raise RuntimeError

    __len__ = __getitem__ = __eq__ = __iter__


class Array(np.ndarray):
    def astype(self, *_, **__):
        raise RuntimeError

    tolist = __iter__ = __len__ = astype

    @property
    def ndim(self):
        raise RuntimeError

    dtype = shape = ndim


class Masked(np.ma.MaskedArray):
    def astype(self, *_, **__):
        raise RuntimeError

    filled = astype


def hidden(mask):
    row = np.ma.MaskedArray([1.0, 2.0], mask=[False, True])
    row.__dict__["_mask"] = mask
    return row


NAN = np.nan
ODD_ROWS = {
    "list": (Rows([1, 2]), [1, 2]),
    "tuple": (Pair((1, 2)), [1, 2]),
    "array": (np.array([1.0, 2.0]).view(Array), [1, 2]),
    "masked": (np.ma.MaskedArray([1.0, 2.0], mask=[False, True]), [1, NAN]),
    "masked of its own class": (np.ndarray.view(np.array([1.0, 2.0]), Masked), [NAN, NAN]),
    "mask that is none": (hidden(Pretender()), [NAN, NAN]),
    "pretender": (Pretender(), [NAN, NAN]),
    "dead reference": (dead_reference(), [NAN, NAN]),
    "dictionary": ({1: 2, 3: 4}, [NAN, NAN]),
}


READ_BEFORE = ("masked", "pretender", "dead reference", "dictionary")
OWN_CLASS = pytest.mark.finding("reliability N7a", commit="8a7c0fb")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in READ_BEFORE else [OWN_CLASS]) for kind in ODD_ROWS]
)
def test_no_code_of_a_rows_own_class_is_run(kind):
    odd, cells = ODD_ROWS[kind]
    (found,) = row_batches([[3, 4], odd, [5, 6]], dim=2)
    assert np.array_equal(found, [[3, 4], cells, [5, 6]], equal_nan=True)


@pytest.mark.finding("reliability N7a", commit="8a7c0fb")
@pytest.mark.parametrize("make", [Pretender, dead_reference])
def test_of_one_feature_an_odd_entry_is_a_missing_cell(make):
    odd = make()
    (found,) = read_rows([3, odd, [5], np.array(6), np.array([7])], Features(1, box=(0.0, 9.0)))
    plain = next(read_rows([3, None, 5, 6, 7], Features(1, box=(0.0, 9.0))))
    assert np.array_equal(found, plain)
    (cells,) = batches([3, odd, 5])
    assert np.array_equal(cells, [3, NAN, 5], equal_nan=True)
