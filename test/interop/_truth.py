"""What every cell must have become, worked out from the export alone."""

import json
import math
import re
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo

DOT = re.compile(r"(\d{4})\.(\d{1,2})\.(\d{1,2}) (\d{1,2}):(\d{2})")
DASH = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
ZONED = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:?\d{2})")


class Misfit(Exception):
    pass


def typed(text: str, kind: str, zone: str | None):
    """The value of a cell of a column of this type; raises Misfit when it has none."""
    if text == "" or (text == "null" and kind != "string"):
        return None
    try:
        return READERS[kind](text, zone)
    except (ValueError, KeyError, AttributeError) as error:
        raise Misfit(kind) from error


def to_boolean(text, _zone):
    return {"TRUE": True, "true": True, "FALSE": False, "false": False}[text]


def to_long(text, _zone):
    if not re.fullmatch(r"0|-?[1-9]\d*", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError
    return int(text)


def to_double(text, _zone):
    if not re.fullmatch(r"-?\d+(\.\d+)?(E[+-]?\d+)?", text):
        raise ValueError
    return float(text)


def to_date(text, _zone):
    if len(text) != 10:
        raise ValueError
    return date.fromisoformat(text)


def to_datetime(text, zone):
    if zone is not None and ZONED.fullmatch(text):
        return datetime.fromisoformat(text).astimezone(timezone.utc)
    dotted = DOT.fullmatch(text)
    if dotted:
        wall = datetime(*map(int, dotted.groups()))
    elif DASH.fullmatch(text):
        wall = datetime.fromisoformat(text)
    else:
        raise ValueError
    if zone is None:
        return wall
    instant = wall.replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)
    if instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != wall:
        raise ValueError
    return instant


def list_of(item):
    def read(text, zone):
        values = json.loads(text, parse_float=str, parse_int=str)
        if not isinstance(values, list):
            raise ValueError
        return [None if value is None else item(value, zone) for value in values]

    return read


READERS = {
    "boolean": to_boolean,
    "long": to_long,
    "double": to_double,
    "date": to_date,
    "datetime": to_datetime,
    "string": lambda text, _zone: text,
    "string[]": list_of(lambda text, _zone: text),
    "long[]": list_of(to_long),
    "double[]": list_of(to_double),
}


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


def same_text(got: str, raw: str) -> bool:
    """Whether a column that widened to text kept the value of the cell, whatever its spelling."""
    if got == raw:
        return True
    for kind in ("boolean", "double", "datetime", "string[]"):
        try:
            return typed(got, kind, None) == typed(raw, kind, None)
        except Misfit:
            continue
    return False


def differences(rows: dict[str, dict], truth: dict[str, dict[str, str]], columns: list[dict], zone: str | None):
    """Yields one line for each value that is not what the export says. `rows` and `truth` are by `_key`."""
    for key in truth.keys() - rows.keys():
        yield f"row {key} is missing"
    for key in rows.keys() - truth.keys():
        yield f"row {key} is nobody's"
    for key in truth.keys() & rows.keys():
        row, cells = rows[key], truth[key]
        rescued = json.loads(row["_rescued"]) if row.get("_rescued") else {}
        for column in columns:
            raw = cell_of(cells, column["source"])
            if column["type"] is None:
                if raw not in ("", "null") and rescued.get(column["source"]) != raw:
                    yield f"{key}: {column['source']} is lost"
                continue
            got = normal(row[column["name"]])
            try:
                wanted = typed(raw, column["type"], zone)
            except Misfit:
                wanted = None
                if rescued.get(column["source"]) != raw:
                    yield f"{key}: {column['source']} is neither read nor rescued"
            if got == wanted or (column["type"] == "string" and got is not None and same_text(got, raw)):
                continue
            yield f"{key}: {column['name']} is {got!r}, the export says {raw!r}"


def cell_of(cells: dict[str, str], source: str) -> str:
    """The event name's column has two names; ours is always the same."""
    if source == "df_event_name" and source not in cells:
        return cells.get("event_name", "")
    return cells.get(source, "")
