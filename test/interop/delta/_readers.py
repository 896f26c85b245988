"""Other people's readers of Delta tables: each gives a table's rows as dicts, of the latest version or an older one."""

import os
import shutil
import subprocess
from pathlib import Path

import deltalake
import duckdb
import duckdb_extension_delta
import polars

from _spark import rows_of, session

DELTA_SPARK = "io.delta:delta-spark_2.13:4.0.0"


def options_of(store: dict[str, str] | None) -> dict[str, str] | None:
    if store is None:
        return None
    return {
        "AWS_ENDPOINT_URL": store["AWS_ENDPOINT_URL_S3"],
        "AWS_ACCESS_KEY_ID": store["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": store["AWS_SECRET_ACCESS_KEY"],
        "AWS_REGION": store["AWS_REGION"],
        "AWS_ALLOW_HTTP": "true",
    }


def read_deltalake(table: str, version: int | None, store) -> list[dict]:
    return deltalake.DeltaTable(table, version=version, storage_options=options_of(store)).to_pyarrow_table().to_pylist()


def read_polars(table: str, version: int | None, store) -> list[dict]:
    return polars.read_delta(table, version=version, storage_options=options_of(store)).to_dicts()


def read_duckdb(table: str, version: int | None, _store) -> list[dict]:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
    connection.execute("SET TimeZone = 'UTC'")
    at = "" if version is None else f", version = {version}"
    found = connection.execute(f"SELECT * FROM delta_scan('{table}'{at})")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


def spark_jars() -> list[str] | None:
    """The jars of delta-spark, through Maven; none where there is no Maven or no Java."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        return None
    repository = Path(os.environ["SCRATCH"]).parent / "maven"
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"
    command = ["mvn", "-q", "-B", plugin, f"-Dartifact={DELTA_SPARK}", f"-Dmaven.repo.local={repository}"]
    if subprocess.run(command, timeout=400).returncode != 0:
        return None
    return [str(jar) for jar in (repository / "io/delta").glob("*/*/*.jar")]


def spark_reader():
    """The reader, or none where Spark cannot be had."""
    jars = spark_jars()
    if not jars:
        return None
    settings = {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    spark = session(settings)

    def read(table: str, version: int | None, _store) -> list[dict]:
        reader = spark.read.format("delta")
        return rows_of((reader if version is None else reader.option("versionAsOf", version)).load(table))

    return read
