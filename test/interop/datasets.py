"""Parquet and Arrow: every reader sees what `sync duckdb` of the same exports holds, of the same types."""

import json
import subprocess
from datetime import datetime, timedelta, timezone

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.ipc

from _service import PROGRAM, SCRATCH, check_none, finish, run, simulator, write_config
from _spark import rows_of, session
from _truth import differences, in_duckdb


def read_pyarrow(path: str):
    table = pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").to_table()
    table.validate(full=True)
    return table.to_pylist()


def read_polars(path: str):
    return polars.read_parquet(f"{path}/**/*.parquet", hive_partitioning=True).to_dicts()


def read_pandas(path: str):
    return pandas.read_parquet(path, dtype_backend="pyarrow").to_dict("records")


def read_duckdb(path: str):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    found = connection.execute(f"SELECT * FROM read_parquet('{path}/*/*.parquet', hive_partitioning = true)")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


def read_spark(path: str):
    return rows_of(session().read.parquet(path))


PARQUET = {
    "pyarrow": read_pyarrow,
    "polars": read_polars,
    "pandas": read_pandas,
    "duckdb": read_duckdb,
    "pyspark": read_spark,
}


def read_pipe(arguments: list[str], reader):
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = reader(process.stdout)
    errors = process.stderr.read().decode()
    assert process.wait(timeout=120) == 0, errors
    return rows


ARROW = {
    "pyarrow": lambda pipe: [row for batch in pyarrow.ipc.open_stream(pipe) for row in batch.to_pylist()],
    "polars": lambda pipe: polars.read_ipc_stream(pipe.read()).to_dicts(),
}


def types_of(manifest: dict, zone: str | None) -> dict[str, str]:
    timestamp = "timestamp[us, tz=UTC]" if zone else "timestamp[us]"
    names = {"boolean": "bool", "long": "int64", "double": "double", "date": "date32[day]", "datetime": timestamp}
    names |= {"string": "string", "string[]": "list<element: string>"}
    names |= {"long[]": "list<element: int64>", "double[]": "list<element: double>"}
    return {column["name"]: names[column["type"]] for column in manifest["columns"] if column["type"]}


def suite(config: dict, zone: str | None) -> None:
    label = zone or "no zone"
    today = datetime.now(timezone.utc).date()
    days = [(today - timedelta(days=back)).isoformat() for back in range(10, 2, -1)]
    path = write_config(f"config-{len(label)}.json", {**config, **({"timezone": zone} if zone else {})})
    lake, file = str(SCRATCH / f"lake-{len(label)}"), SCRATCH / f"events-{len(label)}.duckdb"
    span = ["--config", str(path), "--from", days[0], "--to", days[-1]]
    run("sync", "parquet", lake, *span)
    run("sync", "parquet", lake, *span)
    run("verify", "parquet", lake)
    run("sync", "duckdb", str(file), *span)
    truth = in_duckdb(file, names={})
    manifest = json.loads((SCRATCH / f"lake-{len(label)}" / "_dfinery.json").read_text())["events"]
    events = f"{lake}/events"
    for name, read in PARQUET.items():
        try:
            check_none(f"parquet, {label}, {name}", differences(read(events), truth))
        except Exception as error:  # a reader that cannot read is a finding like any other
            check_none(f"parquet, {label}, {name}", [f"{type(error).__name__}: {error}"])
    schema = pyarrow.dataset.dataset(events, format="parquet", partitioning="hive").schema
    wanted = types_of(manifest, zone)
    check_none(
        f"parquet types, {label}",
        (f"{name}: {schema.field(name).type}, not {kind}" for name, kind in wanted.items() if str(schema.field(name).type) != kind),
    )
    for name, read in ARROW.items():
        rows = read_pipe(["sync", "arrow", "-", *span], read)
        check_none(f"arrow, {label}, {name}", differences(rows, truth))


with simulator(events_per_day=300) as config:
    suite(config, None)
    suite(config, "America/New_York")
finish()
