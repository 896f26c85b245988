"""Plain DuckDB: the exports downloaded, then CREATE TABLE AS."""

import os
import sys

import duckdb

files = sys.argv[1:]
with duckdb.connect(os.environ["BENCH_TARGET"]) as connection:
    connection.execute("CREATE TABLE events AS SELECT * FROM read_csv(?)", [files])
