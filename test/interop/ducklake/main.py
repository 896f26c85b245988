"""Tables of DuckLake: after every step the reference client sees what `sync duckdb` of the same exports holds, at every
snapshot; and what the reference client changes is gone on from, or refused with a sentence."""

import json
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import duckdb_extension_ducklake

from _service import PROGRAM, SCRATCH, simulator, write_config
from _truth import normal

FAILED = []
TABLES = ("events", "event_items", "event_logs")
KEY = {"events": "_key", "event_items": "_key", "event_logs": "df_event_log_id"}
EXTENSION = next(Path(duckdb_extension_ducklake.__file__).parent.rglob("ducklake.duckdb_extension"))


def check(name: str, problems) -> None:
    problems = list(problems)
    print(f"{'ok    ' if not problems else 'FAILED'} {name}" + (f": {len(problems)} differences" if problems else ""), flush=True)
    for problem in problems[:5]:
        print(f"         {problem}")
    if problems:
        FAILED.append(name)


def program(*arguments: str, code: int = 0, environment: dict[str, str] | None = None) -> str:
    command = [*PROGRAM[:1], "--no-warnings", *PROGRAM[1:], *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


class Client:
    """The reference client with a catalog attached."""

    def __init__(self, catalog: Path, read_only: bool = True):
        self.connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"})
        self.connection.execute(f"LOAD '{EXTENSION}'")
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute(f"ATTACH 'ducklake:{catalog}' AS lake{' (READ_ONLY)' if read_only else ''}")
        self.connection.execute("USE lake")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def rows(self, sql: str) -> list[tuple]:
        return self.connection.execute(sql).fetchall()

    def value(self, sql: str):
        return self.rows(sql)[0][0]

    def table(self, name: str, version: int | None = None) -> list[dict]:
        at = "" if version is None else f" AT (VERSION => {version})"
        found = self.connection.execute(f"SELECT * FROM {name}{at}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, map(normal, row))) for row in found.fetchall()]


def in_duckdb(file: Path, table: str) -> dict[str, dict]:
    """The rows of a DuckDB file by key."""
    connection = duckdb.connect(str(file), read_only=True)
    connection.execute("SET TimeZone = 'UTC'")
    found = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, map(normal, row))) for row in found.fetchall()]
    connection.close()
    return {row[KEY[table]]: row for row in rows}


def differences(rows: list[dict], truth: dict[str, dict], table: str, foreign: frozenset = frozenset()):
    found = {row[KEY[table]]: row for row in rows}
    if len(found) != len(rows):
        yield "a key occurs twice"
    for key in truth.keys() ^ found.keys():
        yield f"row {key} is {'missing' if key in truth else 'too many'}"
    for key in truth.keys() & found.keys():
        row = {name: value for name, value in found[key].items() if name != "event_date" and name not in foreign}
        if row.keys() != truth[key].keys():
            yield f"columns differ: {sorted(row.keys() ^ truth[key].keys())}"
            return
        for name, value in truth[key].items():
            if row[name] != value and name != "_dfinery_window":
                yield f"{key}: {name} is {row[name]!r}, in DuckDB {value!r}"


class Place:
    """A catalog, and a DuckDB file that was loaded with the same exports."""

    def __init__(self, label: str, config: Path, *data: str):
        self.label, self.config, self.data = label, config, data
        folder = SCRATCH / label.replace(" ", "-").replace("/", "-")
        folder.mkdir()
        self.catalog, self.file = folder / "catalog.ducklake", folder / "truth.duckdb"
        self.history: dict[int, dict[str, dict[str, dict]]] = {}
        self.foreign: frozenset = frozenset()

    def sync(self, first: str, last: str, *more: str, code: int = 0) -> str:
        span = ["--config", str(self.config), "--from", first, "--to", last]
        if code == 0:
            program("sync", "duckdb", str(self.file), *span)
        return program("sync", "ducklake", str(self.catalog), "--tables", ",".join(TABLES), *self.data, *span, *more, code=code)

    def compare(self, after: str) -> None:
        truth = {table: in_duckdb(self.file, table) for table in TABLES}
        with Client(self.catalog) as client:
            for table in TABLES:
                check(f"{self.label}, {after}, {table}", differences(client.table(table), truth[table], table, self.foreign))
            check(f"{self.label}, {after}, filters", self.filters(client, truth["events"]))
            self.history[client.value("SELECT max(snapshot_id) FROM lake.snapshots()")] = truth
            there = {row[0] for row in client.rows("SELECT snapshot_id FROM lake.snapshots()")}
            for version in sorted(there & self.history.keys()):
                found = differences(client.table("events", version), self.history[version]["events"], "events", self.foreign)
                check(f"{self.label}, {after}, snapshot {version}", found)
        told = json.loads(program("verify", "ducklake", str(self.catalog), "--json"))
        check(f"{self.label}, {after}, verify", [found["message"] for found in told["differences"]])

    def filters(self, client: Client, truth: dict[str, dict]):
        """Filters use partitions and statistics: none may hide a row."""
        by_date: dict = {}
        for row in client.table("events"):
            by_date[row["event_date"]] = by_date.get(row["event_date"], 0) + 1
        for date, rows in by_date.items():
            condition = "IS NULL" if date is None else f"= DATE '{date}'"
            found = client.value(f"SELECT count(*) FROM events WHERE event_date {condition}")
            if found != rows:
                yield f"{found} rows of {date}, there are {rows}"
        times = sorted(row["df_server_datetime"] for row in truth.values() if row["df_server_datetime"])
        for at in times[:: max(1, len(times) // 7)]:
            # Plain text: the zone of the session is UTC.
            found = client.value(f"SELECT count(*) FROM events WHERE df_server_datetime >= '{at}'")
            if found != sum(time >= at for time in times):
                yield f"{found} rows since {at}"
        for column in ("df_correction_datetime", "df_server_datetime", "df_unified_id", "_rescued"):
            found = client.value(f"SELECT count(*) FROM events WHERE {column} IS NULL")
            if found != sum(row.get(column) is None for row in truth.values()):
                yield f"{found} rows without {column}"
        for window, rows in client.rows("SELECT _dfinery_window, count(*) FROM events GROUP BY 1"):
            if client.value(f"SELECT count(*) FROM events WHERE _dfinery_window = {window}") != rows:
                yield f"rows of window {window} are hidden"
        if times and client.value("SELECT max(df_server_datetime) FROM events") != times[-1].replace(tzinfo=times[-1].tzinfo):
            yield "the greatest time is another"


def forget(place: Place, config: dict, person: str) -> None:
    destination = {"base_url": config["base_url"], "service_id": config["service_id"], "import_token": "demo-import-token"}
    path = place.file.parent / "destination.json"
    path.write_text(json.dumps({**destination, "ledger_dir": str(place.file.parent / "ledger")}))
    arguments = ["forget", "--id", person, "--config", str(path), "--spool-dir", str(SCRATCH)]
    purge = ["--purge", "ducklake", str(place.catalog), "--purge-column", "df_unified_id", "--json"]
    plan = json.loads(program(*arguments, *purge).strip().splitlines()[-1])
    program(*arguments, *purge, "--execute", "--confirm", plan["hash"])
    delete(place, f"df_unified_id = '{person}'")


def delete(place: Place, condition: str) -> None:
    connection = duckdb.connect(str(place.file))
    connection.execute(f"DELETE FROM events WHERE {condition}")
    connection.close()


def holding(folder: Path, text: str) -> list[str]:
    ignored = ("truth.duckdb",)
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(ignored) and "ledger" not in str(path)]
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def suite(place: Place, config: dict) -> None:
    today = datetime.now(timezone.utc).date()
    day = [(today - timedelta(days=back)).isoformat() for back in range(9, 2, -1)]
    place.sync(day[0], day[1])
    place.compare("first load")
    copies(place, day)
    place.history.clear()
    place.sync(day[1], day[3])
    place.compare("drift and re-reads")
    place.sync(day[0], day[5], "--full-refresh")
    place.compare("full refresh")
    program("compact", "ducklake", str(place.catalog))
    place.compare("compaction")
    changes_of_others(place, day)
    person = next(row["df_unified_id"] for row in in_duckdb(place.file, "events").values() if row["df_unified_id"])
    forget(place, config, person)
    place.history.clear()
    place.compare("purge")
    check(f"{place.label}, purge leaves no byte", holding(place.catalog.parent, person))
    with Client(place.catalog) as client:
        check(f"{place.label}, purge leaves one snapshot", [] if len(client.rows("FROM lake.snapshots()")) == 1 else ["more"])
    page = place.file.parent / "report.html"
    program("report", "ducklake", str(place.catalog), "-o", str(page), "--spool-dir", str(SCRATCH))
    text = page.read_text()
    check(f"{place.label}, report", [] if "Runs" in text and person not in text else ["no runs, or the person in it"])


def changes_of_others(place: Place, day: list[str]) -> None:
    """What the reference client does to the tables."""
    some = "hash(_key) % 7 = 0"
    with Client(place.catalog, read_only=False) as client:
        keys = [row[0] for row in client.rows(f"SELECT _key FROM events WHERE {some} ORDER BY 1")]
        # A few rows are noted in the catalog, many in a file.
        client.rows(f"DELETE FROM events WHERE _key IN ('{keys[0]}', '{keys[1]}')")
        client.rows(f"DELETE FROM events WHERE {some}")
        client.rows("ALTER TABLE events ADD COLUMN a_note VARCHAR")
        client.rows("CREATE TABLE others AS SELECT range AS n FROM range(50)")
    delete(place, some)
    told = json.loads(program("verify", "ducklake", str(place.catalog), "--json"))
    check(f"{place.label}, verify reads without deleted rows", [found["message"] for found in told["differences"]])
    place.history.clear()
    place.foreign = frozenset({"a_note"})
    program("compact", "ducklake", str(place.catalog))
    place.compare("deleted rows are taken in")
    place.sync(day[5], day[6])
    place.compare("a load after that")
    with Client(place.catalog, read_only=False) as client:
        client.rows("CALL ducklake_merge_adjacent_files('lake')")
        client.rows("CALL ducklake_expire_snapshots('lake', older_than => now())")
        client.rows("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        client.rows("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    place.history.clear()
    place.sync(day[5], day[6])
    place.compare("merged files and expired snapshots")
    with Client(place.catalog, read_only=False) as client:
        client.rows("INSERT INTO events (_key, df_unified_id, event_date) VALUES ('mine', 'me', DATE '2026-01-01')")
    told = place.sync(day[6], day[6], code=2)
    check(f"{place.label}, an inserted row is refused", [] if "another program inserted 1 row" in told else [told])
    with Client(place.catalog, read_only=False) as client:
        client.rows("DELETE FROM events WHERE _key = 'mine'")
        client.rows("INSERT INTO events (_key, df_unified_id, event_date) SELECT 'mine' || range, 'me', DATE '2026-01-01' FROM range(500)")
    told = place.sync(day[6], day[6], code=2)
    check(f"{place.label}, inserted rows are refused", [] if "another program inserted 500 rows" in told else [told])
    with Client(place.catalog, read_only=False) as client:
        client.rows("DELETE FROM events WHERE df_unified_id = 'me'")
        client.rows("ALTER TABLE events RENAME COLUMN df_event_name TO name")
    told = place.sync(day[6], day[6], code=2)
    check(f"{place.label}, a renamed column is refused", [] if "dropped or renamed the column df_event_name" in told else [told])
    with Client(place.catalog, read_only=False) as client:
        client.rows("ALTER TABLE events RENAME COLUMN name TO df_event_name")
        check(f"{place.label}, another table stays", [] if client.value("SELECT count(*) FROM others") == 50 else ["rows are gone"])
    place.history.clear()
    place.sync(day[6], day[6])
    place.compare("all of it given back")


def copies(place: Place, day: list[str]) -> None:
    """A reader of the published copy stays while the catalog is written."""
    copy = place.file.parent / "readers.ducklake"
    place.sync(day[0], day[0], "--publish", str(copy))
    with Client(copy) as client, Client(place.catalog) as original:
        check(f"{place.label}, the copy is the catalog", differences(client.table("events"), in_duckdb(place.file, "events"), "events"))
        before = client.value("SELECT count(*) FROM events")
        original.connection.close()
        place.sync(day[0], day[2], "--full-refresh", "--publish", str(copy))
        program("compact", "ducklake", str(place.catalog))
        check(f"{place.label}, a reader of the old copy goes on", [] if client.value("SELECT count(*) FROM (SELECT * FROM events)") == before else ["rows are gone"])
    with Client(copy) as client:
        check(f"{place.label}, the next copy", differences(client.table("events"), in_duckdb(place.file, "events"), "events"))
    size = copy.stat().st_size
    check(f"{place.label}, the copy is small", [] if size < 2_000_000 else [f"{size} bytes"])
    told = program("sync", "ducklake", str(copy), "--config", str(place.config), code=2)
    check(f"{place.label}, a copy is not loaded", [] if "is a copy for readers" in told else [told])
    other = place.file.parent / "other.ducklake"
    other.write_text("somebody's")
    told = place.sync(day[0], day[0], "--publish", str(other), code=2)
    check(f"{place.label}, another file is not replaced", [] if other.read_text() == "somebody's" else [told])
    backup = place.file.parent / "backup.ducklake"
    shutil.copy(place.catalog, backup)
    program("sync", "ducklake", str(backup), "--config", str(place.config), "--publish", str(copy), code=2)
    backup.unlink()


def locked(place: Place, day: str) -> None:
    """A reader that has the catalog open: a commit waits, then leaves nothing."""
    before = {path for path in place.catalog.parent.rglob("*.parquet")}
    config = place.file.parent / "impatient.json"
    config.write_text(json.dumps({**json.loads(place.config.read_text()), "lock_wait": "2s"}))
    with Client(place.catalog) as client:
        client.value("SELECT count(*) FROM events")
        began = time.monotonic()
        program("sync", "ducklake", str(place.catalog), "--config", str(config), "--from", day, "--to", day, code=3)
        waited = time.monotonic() - began
    check(f"{place.label}, a commit waits for its lock", [] if waited >= 2 else [f"{waited} s"])
    left = {path for path in place.catalog.parent.rglob("*.parquet")} - before
    check(f"{place.label}, and leaves no file", map(str, left))


def killed(place: Place, first: str, last: str) -> None:
    """Runs that are killed at some instant: the reference client reads on, and the same command repairs."""
    span = ["--config", str(place.config), "--from", first, "--to", last, "--tables", ",".join(TABLES), "--full-refresh"]
    # All rows of these days are there, so that a killed run changes none.
    place.sync(first, last, "--full-refresh")
    for milliseconds in (600, 900, 1200, 1500, 1900, 2400):
        command = [*PROGRAM, "sync", "ducklake", str(place.catalog), *place.data, *span]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(milliseconds / 1000)
        process.kill()
        process.wait(timeout=60)
        with Client(place.catalog) as client:
            check(f"{place.label}, killed after {milliseconds} ms", differences(client.table("events"), in_duckdb(place.file, "events"), "events", place.foreign))
    place.history.clear()
    place.sync(first, last, "--full-refresh")
    place.compare("runs that were killed")


with simulator("--rows-per-day", "100") as config:
    for zone in (None, "America/New_York"):
        path = write_config(f"config-{zone is None}.json", {**config, **({"timezone": zone} if zone else {})})
        place = Place(zone or "no zone", path, *(() if zone else ("--data", str(SCRATCH / "no-zone" / "data"))))
        suite(place, config)
        locked(place, (datetime.now(timezone.utc).date() - timedelta(days=3)).isoformat())
# Another service, since the first has few exports left in its hour.
with simulator("--rows-per-day", "100") as config:
    today = datetime.now(timezone.utc).date()
    place = Place("killed", write_config("config-killed.json", config))
    killed(place, (today - timedelta(days=6)).isoformat(), (today - timedelta(days=4)).isoformat())
sys.exit(1 if FAILED else 0)
