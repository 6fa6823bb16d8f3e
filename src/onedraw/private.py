"""What is as private as the records: handed on within one process, never printed or written."""

from __future__ import annotations


class Private:
    """Its ``repr`` tells the public number of records, where it has one, and no field. A dataclass of it says ``repr=False``."""

    def __repr__(self) -> str:
        n = getattr(self, "n", None)
        return f"{type(self).__name__}({'' if n is None else f'n={n}, '}<private>)"
