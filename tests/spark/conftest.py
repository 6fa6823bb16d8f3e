"""A Spark cluster on this machine, as long as the session: two executors of one core, each a process of its own.

What it writes (event log, the driver's and the executors' logs) lies in one folder, where a test looks for cells.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a program of a minute is compiled for longer than it runs faster for it


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.spark)


@dataclass(frozen=True)
class Cluster:
    session: Any
    folder: Path

    def logs(self) -> str:
        """Everything Spark has written so far: the driver, its event log, the executors."""
        files = [
            self.folder / "driver.log",
            *(self.folder / "events").rglob("*"),
            *(self.folder / "home/work").rglob("std*"),
        ]
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files if path.is_file())


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        message = "Spark needs Java 17: sudo apt-get install openjdk-17-jre-headless"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "events").mkdir()
    (folder / "home").mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():  # a home of its own, for executors write into it
        (folder / "home" / entry.name).symlink_to(entry)
    os.environ |= {
        "SPARK_HOME": str(folder / "home"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    session = _started(folder)
    yield Cluster(session, folder)
    session.stop()


def _started(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.executorEnv.PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE.parents[1]}",
        "spark.executorEnv.ONEDRAW_WORKER": "1",  # by which the tests' statistics know where they are
        "spark.executorEnv.XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "spark.executorEnv.ONEDRAW_CACHE": os.environ["ONEDRAW_CACHE"] + "-spark",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("onedraw tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    kept = os.dup(2)  # Java inherits it
    try:
        with (folder / "driver.log").open("wb") as log:
            os.dup2(log.fileno(), 2)
        with (
            warnings.catch_warnings()
        ):  # Java is started by a fork, of which JAX, if it is loaded, warns; the child becomes Java at once
            warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
            return builder.getOrCreate()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
