"""What the records are, and what is public about them.

`Schema` declares columns; `read` opens a file or frame under it; `Records` hands over encoded, clamped
columns in batches. Encoding and clamping go by the schema only, and a record is never a reason to fail: the
rules are in docs/reading-files.md.

Names are loaded when first touched: models read plain columns by `cells` and `columns` where pydantic and pyarrow, which
schemas and files need, are not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .columns import chunks_in
    from .inference import Inference, infer, infer_schema
    from .records import Measure, Records, read
    from .schema import Binary, Category, Column, Count, Date, Number, Schema
    from .tables import DatabaseTable, Table

__all__ = [
    "Binary", "Category", "Column", "Count", "DatabaseTable", "Date", "Inference", "Measure", "Number", "Records", "Schema", "Table",
    "chunks_in", "infer", "infer_schema", "read",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "columns": ("chunks_in",),
        "inference": ("Inference", "infer", "infer_schema"),
        "records": ("Measure", "Records", "read"),
        "schema": ("Binary", "Category", "Column", "Count", "Date", "Number", "Schema"),
        "tables": ("DatabaseTable", "Table"),
    })  # fmt: skip
