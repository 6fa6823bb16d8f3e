"""Dates: every cell read alone, in bulk as one by one, on the clocks of the declared zone, and never by a record's own code."""

import csv
import datetime
import sqlite3
import warnings
import zoneinfo
from datetime import UTC

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw.data import Schema, infer, read
from onedraw.data.columns import Times, cells
from onedraw.data.dates import DAY, MONTHS, WEEKDAYS, compiled, moment_of, shown_day, zone_offsets
from onedraw.errors import InvalidSchema
from tests.source_cases import encoded

patient = settings(deadline=None, print_blob=True, max_examples=40)

FIRST, LAST = datetime.date(2020, 1, 1), datetime.date(2026, 12, 31)
FORMATS = [
    "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%Y%m%d", "%d%m%Y", "%d %B %Y", "%b %d, %Y", "%A, %d %B %Y", "%Y-%j", "%F %T",
    "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y%m%d%H%M%S", "%Y-%m-%dT%H:%M:%S.%f", "%d.%m.%Y %H:%M:%S %z", "%d%%%m%%%Y",
]  # fmt: skip


def schema(**declared):
    column = {"kind": "date", "first": str(FIRST), "last": str(LAST), "missing": "2023-07-01"}
    return Schema.from_dict({"columns": {"v": {**column, **declared}}})


# One cell


@pytest.mark.oracle
@pytest.mark.parametrize("text", FORMATS)
@patient
@given(
    st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2068, 12, 31)),
    st.integers(-14 * 60, 14 * 60),
)
def test_a_text_in_the_declared_format_is_what_python_wrote(text, clock, minutes):
    """`strptime` reads some formats of its own by the locale; `strftime` in the C locale writes what we must read."""
    zone = datetime.timezone(datetime.timedelta(minutes=minutes)) if "%z" in text else None
    written = clock.replace(tzinfo=zone).strftime(text)
    back = datetime.datetime.strptime(written, text.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S"))
    said = moment_of(written, compiled(text))
    assert said is not None
    moment, utc = said
    assert utc == (zone is not None)
    truth = back.astimezone(UTC).replace(tzinfo=None) if utc else back
    assert moment == (truth - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    for same in (f" {written}\t", written.encode(), np.str_(written), written.upper()):
        assert moment_of(same, compiled(text)) == said


NO_DAYS = [
    "", "x", "2026-02-29", "2026-13-01", "2026-00-10", "0000-01-01", "2026-001-1", "26-01-01", "2026-01-01x", "2026-01-01 25:00",
    "2026-01-01 10:60", "2026-01-01 10:00:60", "2026-01-01T10", "2026-01-01 10:00+25:00", "NaT", "nan", "today", "٢٠٢٦-٠١-٠١",
    b"\xff", "2026-01-01\x00", "9" * 5000, "-2026-01-01", "24000-01-01", None, 20260101, 2026.0101, True, 1e300, float("nan"),
    datetime.time(1), datetime.timedelta(1), np.datetime64("NaT"), np.timedelta64(1, "D"), pd.NaT, pd.Timedelta(1), [1], {},
    np.datetime64(2**62, "D"), np.datetime64(-(2**62), "Y"), pd.Period("2026-01"), (2026, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("cell", NO_DAYS, ids=lambda cell: repr(cell)[:30])
def test_what_says_no_day_is_missing_and_nothing_is_raised_or_warned(cell):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared = schema()
        assert encoded({"v": [cell]}, declared) == [1277.0]
        assert encoded({"v": np.array([cell, None], dtype=object)}, declared) == [1277.0] * 2


@pytest.mark.parametrize(
    ("text", "cell", "day"),
    [
        ("%m/%d/%Y", "03/04/2026", "2026-03-04"),
        ("%d/%m/%Y", "03/04/2026", "2026-04-03"),
        ("%d/%m/%Y", "2026-03-04", "2026-03-04"),
        ("%d.%m.%y", "1.2.69", "1969-02-01"),
        ("%d.%m.%y", "1.2.68", "2068-02-01"),
        ("%Y%m%d", 20260304, "2026-03-04"),
        ("%Y%m%d", 20260304.0, "2026-03-04"),
        ("%Y%m%d", "20260304.0", "2026-03-04"),
        ("%d%m%Y", 3042026, "2026-04-03"),
        ("%d%m%Y", "03042026", "2026-04-03"),
        ("%d %B %Y", "3 mArCh 2026", "2026-03-03"),
    ],
)
def test_the_declared_order_decides_and_iso_text_is_always_read(text, cell, day):
    moment, utc = moment_of(cell, compiled(text))
    assert (datetime.date(1970, 1, 1) + datetime.timedelta(days=moment // DAY), utc) == (
        datetime.date.fromisoformat(day),
        False,
    )


class Trap(datetime.datetime):
    """A record whose own class would stop the program."""

    def _fail(self, *_, **__):
        raise RuntimeError("the record's own code was run")

    year = month = day = hour = property(_fail)
    timetuple = utcoffset = isoformat = toordinal = astimezone = __str__ = __hash__ = __eq__ = _fail


class TrapZone(datetime.tzinfo):
    def utcoffset(self, _):
        raise RuntimeError("the record's own code was run")


def test_no_code_of_a_records_own_class_is_run():
    clock = (2026, 3, 1, 12, 30)
    plain = encoded({"v": [datetime.datetime(*clock)]}, schema(format="%F %H:%M"))
    assert encoded({"v": [Trap(*clock)]}, schema(format="%F %H:%M")) == plain
    trapped = [datetime.datetime(*clock, tzinfo=TrapZone()), Trap(*clock, tzinfo=TrapZone())]
    assert encoded({"v": trapped}, schema()) == [1277.0] * 2


# In bulk as one by one


UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "10s"]


@pytest.mark.parametrize("unit", UNITS)
@patient
@given(data=st.data())
def test_an_array_of_dates_is_read_in_bulk_as_one_by_one(unit, data):
    ticks = data.draw(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3000, 30_000)), max_size=8))
    array = np.array(ticks, dtype=np.int64).view(f"M8[{unit}]")
    for part in (None, "year", "quarter", "month", "weekday", "hour"):
        declared = {"part": part, "missing": {"hour": "3", "year": "2021", "quarter": "Q2", "month": "May", "weekday": "Friday"}[part]} if part else {}  # fmt: skip
        encoder = schema(format="%F %T", zone="America/New_York", **declared).column("v").encoder()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bulk = encoder.encode(Times.of_numpy(array))
            assert np.array_equal(bulk, encoder.encode(cells(list(array))))
            assert np.array_equal(bulk, encoder.encode(Times.of_numpy(array).as_cells()))


@pytest.mark.oracle
@patient
@given(st.lists(st.datetimes(datetime.datetime(2019, 1, 1), datetime.datetime(2027, 12, 31)), min_size=1, max_size=8))
def test_days_and_parts_are_those_of_the_calendar_on_clocks_of_the_zone(clocks):
    """Against Python's own calendar and zones, a record at a time."""
    zone = zoneinfo.ZoneInfo("Australia/Lord_Howe")  # whose clocks change by half an hour
    instants = [clock.replace(tzinfo=UTC) for clock in clocks]
    there = [instant.astimezone(zone).replace(tzinfo=None) for instant in instants]
    start, end = datetime.datetime.combine(FIRST, datetime.time()), datetime.datetime.combine(LAST, datetime.time()) + datetime.timedelta(1)  # fmt: skip
    days = [(min(max(clock, start), end) - start) / datetime.timedelta(1) for clock in there]
    frames = [
        {"v": instants},
        {"v": pd.Series(instants)},
        {"v": pl.Series(instants)},
        pa.table({"v": pa.array(instants)}),
    ]
    sources = [
        {"v": there},
        {"v": [clock.isoformat() for clock in there]},
        {"v": [one.isoformat() for one in instants]},
        *frames,
    ]
    names = {
        "year": lambda clock: str(clock.year), "quarter": lambda clock: f"Q{(clock.month + 2) // 3}", "month": lambda clock: MONTHS[clock.month - 1],
        "weekday": lambda clock: WEEKDAYS[clock.weekday()], "hour": lambda clock: str(clock.hour),
    }  # fmt: skip
    for source in sources:
        declared = schema(format="%F %T", zone="Australia/Lord_Howe")
        assert encoded(source, declared) == pytest.approx(days, abs=1e-9)
        whole = schema(zone="Australia/Lord_Howe")
        assert encoded(source, whole) == [
            float(np.clip((clock.date() - FIRST).days, 0, (LAST - FIRST).days)) for clock in there
        ]
        for part, name in names.items():
            levels = schema(format="%F %T", zone="Australia/Lord_Howe", part=part, missing=name(start)).column("v")
            inside = [name(clock) if start <= clock < end else name(start) for clock in there]
            assert encoded(source, Schema(columns={"v": levels})) == [levels.labels.index(one) for one in inside]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Casablanca", "Asia/Kolkata"]
)
def test_the_table_of_a_zone_gives_its_offset_at_every_instant(zone):
    first, last = datetime.date(1900, 1, 1), datetime.date(2045, 12, 31)
    starts, offsets = map(np.array, zone_offsets(zone, first, last))
    rules, seconds = zoneinfo.ZoneInfo(zone), np.random.default_rng(7).integers(-2208988800, 2398377600, 2000)
    seconds = np.concatenate([seconds, *(starts[1:] // 10**6 + step for step in (-1, 0, 1))])
    found = offsets[np.maximum(np.searchsorted(starts, seconds * 10**6, side="right") - 1, 0)]
    for second, offset in zip(seconds.tolist(), found.tolist(), strict=True):
        clock = datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=second)
        assert clock.astimezone(rules).utcoffset() == datetime.timedelta(microseconds=offset)


# Neighbors


ODD_CELLS = st.one_of(
    st.dates(datetime.date(2019, 6, 1), datetime.date(2027, 6, 1)).map(str),
    st.dates(datetime.date(2019, 6, 1), datetime.date(2027, 6, 1)),
    st.datetimes(datetime.datetime(2019, 6, 1), datetime.datetime(2027, 6, 1)).map(
        lambda clock: clock.replace(microsecond=0)
    ),
    st.datetimes(datetime.datetime(2019, 6, 1), datetime.datetime(2027, 6, 1)).map(
        lambda clock: clock.replace(tzinfo=UTC)
    ),
    st.dates(datetime.date(2019, 6, 1), datetime.date(2027, 6, 1)).map(lambda day: day.strftime("%d.%m.%Y")),
    st.sampled_from(
        [None, "word", "", "31.02.2026", "2026-02-31", 7, 2.5, True, "NaT", "1.1.1", "2026-01-01T00:00:00Z"]
    ),
)


def as_polars(column):
    """As objects where clocks with and without an offset meet, to which Polars would give one zone (docs/reading-files.md)."""
    offsets = {cell.tzinfo is None for cell in column if isinstance(cell, datetime.datetime)}
    if len(offsets) > 1 or (any(type(cell) is datetime.date for cell in column) and offsets):
        return pl.DataFrame({"v": pl.Series(column, dtype=pl.Object)})
    try:
        return pl.DataFrame({"v": column})
    except (TypeError, pl.exceptions.PolarsError):  # Polars refuses mixtures; as objects it takes them
        return pl.DataFrame({"v": pl.Series(column, dtype=pl.Object)})


def as_csv(column, folder):
    with open(folder / "d.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["v"], *([cell] for cell in column)])
    return folder / "d.csv"


def as_parquet(column, folder):
    pq.write_table(pa.table({"v": [None if cell is None else str(cell) for cell in column]}), folder / "d.parquet")
    return folder / "d.parquet"


def as_sqlite(column, folder):
    place = folder / "d.sqlite"
    place.unlink(missing_ok=True)
    connection = sqlite3.connect(place)
    connection.execute("CREATE TABLE t (v)")
    plain = [str(cell) if isinstance(cell, datetime.date) else cell for cell in column]
    connection.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in plain])
    connection.commit()
    connection.close()
    return od.DatabaseTable(str(place), "t")


SOURCES = {
    "list": lambda column, _: {"v": column},
    "pandas": lambda column, _: pd.DataFrame({"v": column}),
    "pandas object": lambda column, _: pd.DataFrame({"v": pd.Series(column, dtype=object)}),
    "pandas category": lambda column, _: pd.DataFrame(
        {"v": pd.Series(column, dtype=object).astype(str).astype("category")}
    ),
    "polars": lambda column, _: as_polars(column),
    "CSV": as_csv,
    "Parquet": as_parquet,
    "SQLite": as_sqlite,
}


@pytest.mark.parametrize("source", SOURCES)
@settings(deadline=None, print_blob=True, max_examples=25)
@given(column=st.lists(ODD_CELLS, min_size=2, max_size=7), other=ODD_CELLS, data=st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_replacing_one_odd_or_date_cell_changes_at_most_one_encoded_record(
    source, tmp_path_factory, column, other, data
):
    place = data.draw(st.integers(0, len(column) - 1))
    neighbor = [*column[:place], other, *column[place + 1 :]]
    folder = tmp_path_factory.getbasetemp()
    for declared in (
        schema(format="%d.%m.%Y", zone="Europe/Berlin"),
        schema(format="%d.%m.%Y %H:%M", zone="Europe/Berlin", part="hour", missing="12"),
    ):
        before, after = (encoded(SOURCES[source](cells_, folder), declared) for cells_ in (column, neighbor))
        assert len(before) == len(after)
        assert [k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] in ([], [place])


# Declarations


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"format": "%Y-%d-%m"}, "reads 2001-02-03 as another day"),
        ({"format": "%Y.%m%d"}, "are decimal numbers"),
        ({"format": "%Y-%m"}, "must say the year (%Y), the month (%m) and the day (%d)"),
        ({"format": "%m-%d"}, "must say the year"),
        ({"format": "%Y-%m-%d %I:%M"}, "%I together with %p"),
        ({"format": "%Y-%m-%d %M"}, "has %M without hours"),
        ({"format": "%Y-%m-%d %Y"}, "has a part twice"),
        ({"format": "%Y-%m-%d %Q"}, "%Q in the format"),
        ({"format": "%Y-%m-%d %"}, "ends in a single %"),
        ({"first": "01.01.2020"}, "is no day. Write year, month and day"),
        ({"first": ...}, "`first:` is not declared"),
        ({"last": "2019-12-31"}, "expected first before last"),
        ({"last": "2020-01-01"}, "expected first before last"),
        ({"zone": "Mars/Olympus"}, "no time zone is called"),
        ({"missing": "2019-12-31"}, "is no day from 2020-01-01"),
        ({"missing": "x"}, "is no day from"),
        ({"part": "hour", "missing": "3"}, "`part: hour` needs a format with hours"),
        ({"part": "decade"}, "expected one of year, quarter, month, weekday and hour"),
        ({"part": "month", "missing": "Mai"}, "is no month that occurs"),
        ({"part": "month", "missing": "May", "step": 30}, "`step:` is days"),
        ({"part": "year", "last": "2020-12-31", "missing": "2020"}, "there is only one year"),
    ],
)
def test_a_date_column_that_cannot_be_is_refused_with_a_remedy(declared, words):
    base = {"kind": "date", "first": str(FIRST), "last": str(LAST), "missing": "2023-07-01"} | declared
    with pytest.raises(InvalidSchema) as refused:
        Schema.from_dict({"columns": {"v": {name: value for name, value in base.items() if value is not ...}}})
    assert words in str(refused.value)


def test_a_schema_of_dates_survives_being_written_and_is_what_its_json_schema_says(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    one = schema(format="%d.%m.%Y %H:%M", zone="Europe/Berlin", part="hour", missing=12)
    assert Schema.from_dict({"columns": {"v": one.column("v").model_dump(exclude_none=True)}}) == one
    assert schema(first=FIRST, last=LAST, missing=datetime.date(2023, 7, 1)) == schema()
    one.save(tmp_path / "s.yaml")
    assert Schema.load(tmp_path / "s.yaml") == one
    jsonschema.validate(one.to_dict(), Schema.json_schema())


def test_levels_of_a_part_are_those_that_can_occur():
    short = {"first": "2025-11-15", "last": "2026-02-10"}
    assert schema(**short, part="month", missing="January").column("v").labels == (
        "January",
        "February",
        "November",
        "December",
    )
    assert schema(**short, part="quarter", missing="Q1").column("v").labels == ("Q1", "Q4")
    assert schema(**short, part="year", missing=2025).column("v").labels == ("2025", "2026")
    assert schema(**short, part="weekday", missing="Monday").column("v").labels == WEEKDAYS
    november = encoded(
        {"v": ["2025-11-20", "2025-12-31", "2026-03-01"]}, schema(**short, part="month", missing="January")
    )
    assert november == [2, 3, 0]  # a day outside the range is no level


def test_a_public_file_of_dates_gives_a_column_of_dates(tmp_path):
    texts = {
        "v": ["2019-03-01", "2019-04-30", "", "2019-03-05"],
        "w": ["2019-03-01 10:00", "2019-03-02 11:30", None, "?"],
    }
    typed = pa.table({"v": pa.array(texts["v"][:2], pa.string()).cast(pa.date32())})
    found = infer(texts).schema.columns
    assert (found["v"].first, found["v"].last, found["v"].format) == ("2019-03-01", "2019-04-30", "%Y-%m-%d")
    assert found["w"].format == "%Y-%m-%d %H:%M:%S"
    assert infer(typed).schema.columns["v"] == found["v"]


def test_days_are_shown_as_dates():
    assert shown_day(FIRST, 59.4, clock=False) == "2020-02-29"
    assert shown_day(FIRST, 59.75, clock=True) == "2020-02-29 18:00"
    assert shown_day(FIRST, 1e9, clock=False) == "1e+09 days after 2020-01-01"


def test_records_of_dates_hold_what_was_declared():
    records = read({"v": ["2026-03-01", "x"]}, schema(), target="v")
    assert np.concatenate(list(records.values())).tolist() == [2251.0, 1277.0]
