"""Spark's ways, as far as reading a frame needs them: its types, its Parquet files, its cores, and its errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from onedraw.data.columns import Wanted
from onedraw.data.shards import CountedFile
from onedraw.errors import FileMismatch

_SUITABLE = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary", "void")
_DATES = ("date", "timestamp", "timestamp_ntz")
_SUITABLE_WITH_SIZE = ("decimal(", "char(", "varchar(", "string collate")


def is_spark(source: Any) -> bool:
    """A frame of Spark's, ordinary or remote, known without importing Spark."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


def parquet_files(frame: Any) -> list[CountedFile] | None:
    """The files of a frame that is nothing but Parquet files under a path, its columns chosen at most; otherwise None.

    Looks at Spark's own plan, which hosted clusters may not show; what cannot be seen is left to Spark to read.
    """
    try:
        plan = frame._jdf.queryExecution().analyzed()
        while plan.nodeName() == "SubqueryAlias" or (plan.nodeName() == "Project" and _chooses(plan)):
            plan = plan.child()
        relation = plan.relation()
        kind = relation.fileFormat().getClass().getName()
        if frame.is_cached or kind != _PARQUET or relation.partitionSchema().size():
            return None
        places = [urlsplit(uri) for uri in relation.location().inputFiles()]
        if any((place.scheme, place.netloc) != ("file", "") for place in places):
            return None
        return [CountedFile.at(unquote(place.path)) for place in places]
    except Exception:
        return None


_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"


def _chooses(project: Any) -> bool:
    """Whether it takes columns as they are."""
    chosen = project.projectList()
    kinds = {chosen.apply(place).getClass().getSimpleName() for place in range(chosen.size())}
    return kinds <= {"AttributeReference"}


_SPARK_TYPES = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float",
    pa.float64(): "double", pa.bool_(): "boolean", pa.string(): "string", pa.large_string(): "string", pa.binary(): "binary",
    pa.large_binary(): "binary", pa.date32(): "date",
}  # fmt: skip


def spark_type(kind: pa.DataType | None) -> str | None:
    """The type Spark gives such a column of a file, for those it reads to the same cells as Arrow."""
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if isinstance(kind, pa.Decimal128Type):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, pa.TimestampType) and kind.unit in ("ms", "us"):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return None if kind is None else _SPARK_TYPES.get(kind)


def cores(session: Any) -> int:
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:  # a remote session does not say
        setting = session.conf.get
        return int(setting("spark.default.parallelism", None) or setting("spark.sql.shuffle.partitions"))


def suitable(kind: str, wanted: Wanted) -> bool:
    if kind in _DATES:
        return wanted is Wanted.DATES
    return kind in _SUITABLE or kind.startswith(_SUITABLE_WITH_SIZE)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Spark's errors in our words: its own may quote a cell, and the workers' tracebacks hold them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    except (PySparkException, Py4JError) as error:
        raise FileMismatch(_in_words(doing, error)) from None
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _in_words(doing: str, error: Exception) -> str:
    said = str(error)
    if "No module named 'onedraw'" in said:
        return f"Spark failed while {doing}: its workers do not have onedraw. Install it on the cluster, in the same version."
    if "JAVA_GATEWAY_EXITED" in said or "Java gateway" in said:
        return "Spark did not start: it needs Java 17 or newer. Install it (on Debian: apt-get install openjdk-17-jre-headless)."
    if "PermissionError" in said or "ONEDRAW_SCRATCH" in said:
        return (
            f"Spark failed while {doing}: a worker cannot use the folder of encoded records. Set ONEDRAW_SCRATCH to a folder that "
            "the driver and all workers share and may write, and that nothing else cleans up or writes to."
        )
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return (
        f"Spark failed while {doing}: {condition}. Its own message may quote a record, so it is not repeated here; look into "
        "Spark's log, and see whether the frame can be counted and written elsewhere."
    )
