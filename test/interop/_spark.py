"""A Spark on loopback, without its page, in UTC."""

import os
import sys
from datetime import datetime, timezone


def session(more: dict[str, str] | None = None):
    from pyspark.sql import SparkSession

    os.environ |= {"TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    return SparkSession.builder.master("local[1]").config(map={**settings, **(more or {})}).getOrCreate()


def rows_of(frame) -> list[dict]:
    """The rows as dicts; the instants of Spark have no zone."""
    instants = {name for name, kind in frame.dtypes if kind == "timestamp"}
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        for name in instants:
            if isinstance(row[name], datetime) and row[name].tzinfo is None:
                row[name] = row[name].replace(tzinfo=timezone.utc)
    return rows
