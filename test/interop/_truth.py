"""What readers must find: the rows of a DuckDB file that was loaded with the same exports."""

import math
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb

# What Delta refuses in a name.
REFUSED = str.maketrans({character: "_" for character in " ,;{}()\n\t="})
# The two places were loaded one after the other.
LOADED_WITHIN = timedelta(minutes=10)


def in_duckdb(file: Path, names=REFUSED) -> dict[str, dict]:
    """The rows of the file by key, under the names that the files of a target give to its columns."""
    connection = duckdb.connect(str(file), read_only=True)
    connection.execute("SET TimeZone = 'UTC'")
    found = connection.execute("SELECT * EXCLUDE (event_date) FROM events")
    columns = [column[0].translate(names) for column in found.description]
    rows = [{name: normal(value) for name, value in zip(columns, row)} for row in found.fetchall()]
    connection.close()
    return {row["_key"]: row for row in rows}


def normal(value):
    """A value as any reader may give it, as plain Python."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    return value


def differences(rows: list[dict], truth: dict[str, dict]):
    """Yields one line for each value that is not what the DuckDB file holds."""
    found = {row["_key"]: row for row in rows}
    if len(found) != len(rows):
        yield "a key occurs twice"
    for key in truth.keys() ^ found.keys():
        yield f"row {key} is {'missing' if key in truth else 'too many'}"
    for key in truth.keys() & found.keys():
        row = {name: normal(value) for name, value in found[key].items() if name != "event_date"}
        if row.keys() != truth[key].keys():
            yield f"columns differ: {sorted(row.keys() ^ truth[key].keys())}"
            return
        for name, value in truth[key].items():
            if name == "_loaded_at":
                same = abs(row[name].replace(tzinfo=None) - value.replace(tzinfo=None)) < LOADED_WITHIN
            else:
                same = row[name] == value
            if not same:
                yield f"{key}: {name} is {row[name]!r}, in DuckDB {value!r}"
