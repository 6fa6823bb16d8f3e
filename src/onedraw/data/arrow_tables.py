"""pyarrow, met in this one file: Parquet and Arrow files, tables in memory, and plain lines of CSV.

The type of a column is part of such a file's schema, written by whoever defined the table and the same
whatever the records are; a type that cannot hold the declared kind (a list, a date for a number) is therefore a mismatch of
the file, found before a record is looked at. In a table in memory it is a column of missing cells. Within a suitable type nothing is refused: text is read cell
by cell, bytes need not be UTF-8, integers need not fit a float.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from onedraw.arrays import Mask
from onedraw.data.cells import BLANKS, EXACT_INTEGERS, NUMBER, number_of
from onedraw.data.columns import Cells, Chunk, Numbers, Times, Wanted, missing_cells
from onedraw.data.tables import Batch, Part, Table, file_version, workers
from onedraw.errors import FileMismatch

ROWS_PER_PART = 2**20  # small row groups are read several at a time

FIRST_CHECKED = 2**20
"""Values up to which a file is decoded once before anything is paid, which takes milliseconds. In a longer file the pass that is paid
for finds the damage: the spend stands, and `resume` finishes with the mended file."""


# Arrays to chunks


def suitable(kind: Any, wanted: Wanted = Wanted.LABELS) -> bool:
    """Whether a column of this Arrow type can hold numbers, levels or identifiers; or dates, where these are wanted."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_dictionary(kind):
        return suitable(kind.value_type, wanted)
    if _holds_dates(kind):
        return wanted is Wanted.DATES
    numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null
    return _is_text(kind) or any(test(kind) for test in numeric)


def chunk_of(array: Any, wanted: Wanted) -> Chunk:
    """One column of a batch as numbers where the array holds numbers, otherwise as cells."""
    if pa.types.is_null(array.type) or not suitable(array.type, wanted):
        return missing_cells(len(array))
    if isinstance(array, pa.ChunkedArray):
        if _is_text(array.type):
            array = array.cast(pa.large_binary())  # one array of texts may hold no more than two gigabytes
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        if _is_text(kind.value_type) and len(array.dictionary) <= len(array):
            return _coded(array)
        return chunk_of(array.dictionary_decode(), wanted)
    if _holds_dates(kind):
        unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
        utc, absent = pa.types.is_timestamp(kind) and kind.tz is not None, numpy_array(array.is_null())
        ticks = array.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else array.cast(pa.int64())
        return Times(numpy_array(ticks.fill_null(0)).copy(), unit, absent, utc)
    if pa.types.is_decimal(kind):  # through text: a direct cast turns 0.3 into 0.30000000000000004
        return chunk_of_text(array.cast(pa.string()), wanted)
    if _is_text(kind):
        return chunk_of_text(array, wanted)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    if pa.types.is_floating(array.type) or not array.null_count:
        return Numbers(numpy_array(array))
    # A null must not turn the other integers into floats, which could no longer be told apart.
    return Numbers(numpy_array(array.fill_null(scalar(0, array.type))), numpy_array(array.is_null()))


def numpy_array(array: Any) -> Any:
    """Return Arrow's numbers or truth values as NumPy's, a null float as NaN.

    Arrow's own conversion loads pandas, where it is installed: a quarter of a second.
    """
    if pa.types.is_boolean(array.type):
        return numpy_array(array.cast(pa.uint8())).astype(bool)
    if pa.types.is_floating(array.type) and array.null_count:
        array = array.fill_null(scalar(math.nan, array.type))
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type)) or array.null_count:
        return array.to_numpy(zero_copy_only=False)
    return np.from_dlpack(array)


def scalar(value: float, kind: Any) -> Any:
    """Return one number as a scalar of this Arrow type.

    `pyarrow.scalar` loads pandas, where it is installed.
    """
    one = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(np.float64(value).tobytes())])
    return one.cast(kind)[0]


def arrow_mask(mask: Mask) -> Any:
    """Return truth values as Arrow's, which `pyarrow.array` would load pandas for."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits])


def chunk_of_text(array: Any, wanted: Wanted) -> Chunk:
    """The same of one that is known to hold texts or bytes."""
    raw = array.cast(pa.large_binary())  # bytes: stored text is not always UTF-8
    if wanted is Wanted.NUMBERS:
        return Numbers(_parsed(raw))
    if wanted is Wanted.IDENTIFIERS:
        numbers = _cast(raw)
        if numbers is not None and bool(np.all(np.abs(numbers) < EXACT_INTEGERS)):
            return Numbers(numbers)
    return _coded(pc.dictionary_encode(raw))


def _parsed(raw: Any) -> Any:
    """All cells as float64, NaN where missing: in bulk as far as they look like numbers, the rest one by one."""
    numbers = _cast(raw)
    if numbers is None:
        trimmed = pc.ascii_trim(raw.view(pa.large_string()), characters=BLANKS).view(pa.large_binary())
        looks = pc.fill_null(pc.match_substring_regex(trimmed, f"^(?:{NUMBER})$"), scalar(0, pa.bool_()))
        numbers = _cast(pc.if_else(looks, trimmed, pa.nulls(1, trimmed.type)[0]))
        is_word = ~numpy_array(looks)
        if numbers is None:
            is_word, numbers = np.ones(len(raw), dtype=bool), np.full(len(raw), np.nan)
        numbers = np.array(numbers)  # Arrow's memory is not ours to change
        numbers[is_word] = [number_of(cell) for cell in raw.filter(arrow_mask(is_word)).to_pylist()]
    return numbers


def _cast(raw: Any) -> Any | None:
    """The cells as float64 by Arrow's own reading, or None if there is one it cannot read."""
    try:
        return numpy_array(raw.view(pa.large_string()).cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def _coded(array: Any) -> Cells:
    codes = numpy_array(array.indices.cast(pa.int64()).fill_null(scalar(-1, pa.int64())))
    return Cells(array.dictionary.cast(pa.large_binary()).to_pylist(), codes)


def _holds_dates(kind: Any) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_numeric(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _is_text(kind: Any) -> bool:
    return kind in _TEXT or pa.types.is_fixed_size_binary(kind)


_TEXT = {pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()}


# Files and tables


class ArrowTable(Table):
    """What the Arrow sources share: a schema of names and types."""

    def __init__(self, schema: Any, n: int, what: str) -> None:
        self.names, self.n, self.what = tuple(schema.names), n, what
        self.types = dict(zip(schema.names, schema.types, strict=True))

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        # The head of the type's name: its parameters may be a record's, such as the fields of a struct made from dictionaries.
        kinds = {name: self.types[name] for name, reading in wanted.items() if not suitable(self.types[name], reading)}
        return {name: str(kind).partition("<")[0] for name, kind in kinds.items()}

    def _batches(self, batches: Iterator[Any], wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        for batch in batches:
            columns = {name: batch.column(batch.schema.get_field_index(name)) for name in wanted}
            for start in range(0, batch.num_rows, rows):
                yield {name: chunk_of(column.slice(start, rows), wanted[name]) for name, column in columns.items()}


class ArrowFile(ArrowTable):
    """A Parquet or an Arrow file: what is wrong with it is found where a pass decodes it."""

    ahead = True
    _path: Path

    def kinds(self) -> dict[str, str]:
        tests = {"date": _holds_dates, "binary": pa.types.is_boolean, "number": _is_numeric}
        return {name: kind for name, stored in self.types.items() for kind, test in tests.items() if test(stored)}

    def version(self) -> Any:
        return file_version(self._path)

    def check_whole(self, names: Sequence[str]) -> None:
        if self.n * len(names) <= FIRST_CHECKED:
            with self._columns(names, 2**16) as batches:
                deque(batches, 0)  # its pages could be decoded: that is all that was asked

    def batches(self, wanted: Mapping[str, Wanted], rows: int, groups: Sequence[int] | None = None) -> Iterator[Batch]:
        with self._columns(wanted, rows, groups) as batches:
            yield from self._batches(batches, wanted, rows)

    def _columns(self, names: Collection[str], rows: int, groups: Sequence[int] | None = None) -> Any:
        """A context that gives the record batches of these columns; what is wrong with the file is a `FileMismatch` there."""
        raise NotImplementedError


class ParquetTable(ArrowFile):
    """A Parquet file, or some of its row groups: only the wanted columns are read, groups side by side, a megabyte at a time."""

    def __init__(self, path: Path, groups: Sequence[int] | None = None) -> None:
        import pyarrow.parquet as pq

        self._path = path
        with _readable(path), pq.ParquetFile(path) as file:
            chosen = range(file.metadata.num_row_groups) if groups is None else groups
            self.group_rows = {place: file.metadata.row_group(place).num_rows for place in chosen}
            super().__init__(file.schema_arrow, sum(self.group_rows.values()), path.name)

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        enough = ROWS_PER_PART if workers() > 1 else self.n  # one thread reads one part with less ado
        groups: list[list[int]] = []
        held = enough
        for group, group_rows in self.group_rows.items():
            if held >= enough:
                groups.append([])
                held = 0
            groups[-1].append(group)
            held += group_rows
        return [partial(self.batches, dict(wanted), rows, group) for group in groups]

    @contextmanager
    def _columns(self, names: Collection[str], rows: int, groups: Sequence[int] | None = None) -> Iterator[Any]:
        import pyarrow.parquet as pq

        # Without pre-buffering a column is streamed, so that memory does not grow with the row group. As plain bytes: Arrow
        # turns text into pandas' categories by a cast that fails where one record's text is not UTF-8.
        options: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**20, "binary_type": pa.large_binary()}
        with _readable(self._path), pq.ParquetFile(self._path, **options) as file:
            chosen = list(self.group_rows if groups is None else groups)
            yield file.iter_batches(batch_size=rows, row_groups=chosen, columns=list(names))


class IpcTable(ArrowFile):
    """An Arrow file (also Feather version 2), mapped into memory; or an Arrow stream, read from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _readable(path):
            with pa.memory_map(str(path)) as source:
                self._stream = source.read(6) != b"ARROW1"
            with pa.memory_map(str(path)) as source:
                schema = self._open(source, []).schema
            with pa.memory_map(str(path)) as source:  # one column is enough to count
                n = sum(batch.num_rows for batch in self._each(self._open(source, [0])))
            super().__init__(schema, n, path.name)

    def _open(self, source: Any, fields: list[int]) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return (pa.ipc.open_stream if self._stream else pa.ipc.open_file)(source, options=options)

    def _each(self, reader: Any) -> Iterator[Any]:
        if self._stream:
            yield from reader
        else:
            yield from (reader.get_batch(place) for place in range(reader.num_record_batches))

    @contextmanager
    def _columns(self, names: Collection[str], rows: int, groups: Sequence[int] | None = None) -> Iterator[Any]:
        fields = [place for place, name in enumerate(self.names) if name in names]
        with _readable(self._path), pa.memory_map(str(self._path)) as source:
            yield self._checked(self._open(source, fields))

    def _checked(self, reader: Any) -> Iterator[Any]:
        """Its batches, each looked at before anybody follows what it points to."""
        for batch in self._each(reader):
            for column in batch.columns:
                _check_structure(column)
            yield batch


def _check_structure(array: Any) -> None:
    """Raise `ArrowInvalid` where offsets or codes point outside the file, which would crash whoever follows them.

    The cells themselves are not looked at: text is taken as bytes, since no record may be a reason to fail.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        _check_structure(array.dictionary)
        numbered = pa.array(range(len(array.dictionary)), pa.int64())
        pa.DictionaryArray.from_arrays(array.indices, numbered, safe=False).validate(full=True)
    elif array.type in _TEXT:
        array.view(_AS_BYTES.get(array.type, array.type)).validate(full=True)


_AS_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


class MemoryTable(ArrowTable):
    """A pyarrow Table or RecordBatch; of a RecordBatchReader, read once, the declared columns are kept."""

    def __init__(self, table: Any, keep: Collection[str]) -> None:
        what = f"the pyarrow {type(table).__name__}"
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        elif isinstance(table, pa.RecordBatchReader):
            places = [place for place, name in enumerate(table.schema.names) if name in keep]
            kept = pa.schema([table.schema.field(place) for place in places])
            table = pa.Table.from_batches([batch.select(places) for batch in table], kept)
        self._table = table
        super().__init__(table.schema, table.num_rows, what)

    def unsuitable(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        return {}  # the type of a table made in memory may have been inferred from its records

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        columns = self._table.select(list(wanted))
        return self._batches(iter(columns.to_batches(max_chunksize=rows)), wanted, rows)


def is_arrow(source: Any) -> bool:
    return isinstance(source, (pa.Table, pa.RecordBatch, pa.RecordBatchReader))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError):
        # Arrow's own words may quote a cell; ours never do.
        raise FileMismatch(
            f"{path.name} cannot be read as a Parquet or Arrow file: it is damaged, still being written, or "
            "in another format. Check that it opens elsewhere, and that its name ends in what it is."
        ) from None


# Plain lines of CSV


def split_lines(lines: bytes, rows: int, columns: int, wanted: Sequence[int]) -> list[Any] | None:
    """The wanted columns of `rows` plain lines with `columns` cells each; None if Arrow disagrees."""
    from pyarrow import csv

    names = list(map(str, wanted))
    try:
        table = csv.read_csv(
            pa.BufferReader(lines),
            read_options=csv.ReadOptions(
                column_names=list(map(str, range(columns))), block_size=len(lines) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(
                quote_char=False, escape_char=False, newlines_in_values=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False, include_columns=names, column_types=dict.fromkeys(names, pa.binary())
            ),
        )
    except pa.ArrowInvalid:
        return None
    return [table.column(name).combine_chunks() for name in names] if table.num_rows == rows else None


def weave(plain: Any | None, odd: Sequence[bytes | None], is_odd: Mask) -> Any:
    """One column again from its plain cells, if there are any, and its odd cells, each in their order."""
    if plain is None:
        return pa.array(odd, pa.binary())
    order = np.empty(len(is_odd), dtype=np.int64)
    order[~is_odd] = np.arange(len(is_odd) - len(odd))
    order[is_odd] = np.arange(len(is_odd) - len(odd), len(is_odd))
    return pa.concat_arrays([plain, pa.array(odd, pa.binary())]).take(pa.array(order))
