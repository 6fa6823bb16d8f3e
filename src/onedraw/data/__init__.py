"""What the records are, and what is public about them.

`Schema` declares columns; `read` opens a file or frame under it; `Records` hands over encoded, clamped
columns in batches. Encoding and clamping go by the schema only, and a record is never a reason to fail: the
rules are in docs/reading-files.md.
"""

from onedraw.data.inference import Inference, infer, infer_schema
from onedraw.data.records import Measure, Records, read
from onedraw.data.schema import Binary, Category, Column, Count, Number, Schema

__all__ = [
    "Binary",
    "Category",
    "Column",
    "Count",
    "Inference",
    "Measure",
    "Number",
    "Records",
    "Schema",
    "infer",
    "infer_schema",
    "read",
]
