"""Copies the days that changed since its last run from a DuckDB file into ClickHouse.

    pip install duckdb clickhouse-connect
    python copy_days_clickhouse.py events.duckdb 'http://default:password@localhost:8123/default'
"""

import sys
import tempfile
from pathlib import Path

import clickhouse_connect
import duckdb

TIME = "DateTime64(6, 'UTC')"
TYPES = {"BIGINT": "Int64", "BOOLEAN": "Bool", "DATE": "Date32", "DOUBLE": "Float64"}
TYPES |= {"TIMESTAMP": TIME, "TIMESTAMP WITH TIME ZONE": TIME}

db = duckdb.connect(sys.argv[1], read_only=True)
clickhouse = clickhouse_connect.get_client(dsn=sys.argv[2])
clickhouse.command(
    "CREATE TABLE IF NOT EXISTS events (_key String, event_date Date) "
    "ENGINE = MergeTree PARTITION BY event_date ORDER BY _key"
)
clickhouse.command(f"CREATE TABLE IF NOT EXISTS events_mark (changed_at {TIME}) ENGINE = MergeTree ORDER BY changed_at")


def type_of(kind):
    item = f"Nullable({TYPES.get(kind.removesuffix('[]'), 'String')})"
    return f"Array({item})" if kind.endswith("[]") else item


there = {name: kind for name, kind, *_ in clickhouse.query("DESCRIBE TABLE events").result_rows}
for name, kind, *_ in db.execute("DESCRIBE SELECT * EXCLUDE (_key, event_date) FROM events").fetchall():
    if there.get(name) == type_of(kind):
        continue
    quoted = "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
    if name in there:  # its type is wider now: all days are copied again
        clickhouse.command("TRUNCATE TABLE events_mark")
        clickhouse.command(f"ALTER TABLE events DROP COLUMN {quoted}")
    clickhouse.command(f"ALTER TABLE events ADD COLUMN {quoted} {type_of(kind)}")

mark = clickhouse.command("SELECT toString(max(changed_at)) FROM events_mark")  # 1970 without a row
receipts = "SELECT event_date, rows_stored, timezone('UTC', changed_at) AS changed FROM _dfinery_days"
days = db.execute(f"FROM ({receipts}) WHERE changed > CAST(? AS TIMESTAMP) ORDER BY changed", [mark]).fetchall()
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "day.parquet")
    for day, rows, _ in days:
        if rows == 0:
            clickhouse.command(f"ALTER TABLE events DROP PARTITION '{day}'")
            continue
        db.execute(f"COPY (FROM events WHERE event_date = '{day}') TO '{path}'")
        clickhouse.command("CREATE OR REPLACE TABLE events_day AS events")
        clickhouse.raw_insert("events_day", insert_block=path.open("rb"), fmt="Parquet")
        clickhouse.command(f"ALTER TABLE events REPLACE PARTITION '{day}' FROM events_day")  # in one step
if days:  # the last step: a run that is killed before it copies these days again
    clickhouse.command(f"INSERT INTO events_mark VALUES ('{days[-1][2]:%Y-%m-%d %H:%M:%S.%f}')")
clickhouse.command("DROP TABLE IF EXISTS events_day SYNC")  # it holds the rows of a day
print(f"{len(days)} days copied")
