"""Copies the days that changed since its last run from a DuckDB file into a database that DuckDB attaches.

    pip install duckdb
    python copy_days.py events.duckdb 'postgres:dbname=analytics'
    python copy_days.py events.duckdb ducklake:mine.ducklake
"""

import sys

import duckdb

db = duckdb.connect()
db.execute(f"ATTACH '{sys.argv[1]}' AS source (READ_ONLY)")
db.execute(f"ATTACH '{sys.argv[2]}' AS target")
db.begin()  # one transaction: a run that is killed changes nothing

# JSON becomes text: not every database gives its type back.
db.execute("CREATE TEMP VIEW fresh AS SELECT * REPLACE (CAST(_rescued AS VARCHAR) AS _rescued) FROM source.events")
db.execute("CREATE TABLE IF NOT EXISTS target.events AS FROM fresh LIMIT 0")
db.execute("CREATE TABLE IF NOT EXISTS target.events_mark (changed_at TIMESTAMPTZ)")


def columns(table):
    return {name: kind for name, kind, *_ in db.execute(f"DESCRIBE {table}").fetchall()}


there = columns("target.events")
for name, kind in columns("fresh").items():
    if there.get(name) == kind:
        continue
    quoted = '"' + name.replace('"', '""') + '"'
    if name in there:  # its type is wider now: all days are copied again
        db.execute(f"ALTER TABLE target.events DROP COLUMN {quoted}")
        db.execute("DELETE FROM target.events_mark")
    db.execute(f"ALTER TABLE target.events ADD COLUMN {quoted} {kind}")

mark = "SELECT coalesce(max(changed_at), '-infinity') FROM target.events_mark"
days = db.execute(f"SELECT event_date FROM source._dfinery_days WHERE changed_at > ({mark}) ORDER BY ALL").fetchall()
for day in days:
    db.execute("DELETE FROM target.events WHERE event_date = ?", day)
    db.execute("INSERT INTO target.events BY NAME FROM fresh WHERE event_date = ?", day)
if days:
    db.execute("DELETE FROM target.events_mark")
    db.execute("INSERT INTO target.events_mark SELECT max(changed_at) FROM source._dfinery_days")
db.commit()
print(f"{len(days)} days copied")
