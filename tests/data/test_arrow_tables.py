"""Columns put together again from plain and odd cells."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from onedraw.data.arrow_tables import weave  # noqa: E402  (needs pyarrow)


def test_odd_cells_return_to_their_rows():
    plain = pa.array([b"1", b"2", b"3"], pa.binary())
    column = weave(plain, [b'"a"', None], np.array([False, True, False, True, False]))
    assert column.to_pylist() == [b"1", b'"a"', b"2", None, b"3"]


def test_column_of_odd_cells_alone_is_those_cells():
    assert weave(None, [b"x", None], np.array([True, True])).to_pylist() == [b"x", None]
