"""One column of each kind, and a source's cells as it encodes them: what every source of records is tested with."""

import numpy as np

from onedraw.data import Schema, read

COLUMNS = {
    "number": {"kind": "number", "lower": -5, "upper": 5, "missing": 0.25},
    "count": {"kind": "count", "cap": 3, "missing": 2},
    "category": {"kind": "category", "levels": ["2", "1", "0.5", "word"], "missing": "word"},
    "binary": {"kind": "binary", "missing": "no"},
}


def schema_of(kind, name="v"):
    return Schema.from_dict({"columns": {name: COLUMNS[kind]}})


def encoded(source, schema, column="v", **options):
    records = read(source, schema, **options)
    arrays = list(records.values(column))
    result = np.concatenate(arrays).tolist() if arrays else []
    assert len(result) == records.n
    return result
