"""The scripts under examples/databases keep tables of other databases equal to a DuckDB file, whatever happens to it."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import duckdb_extension_ducklake
import duckdb_extension_postgres_scanner

import _postgres
from _service import PROJECT, SCRATCH, run, write_config
from _world import World, day_before, event

EXAMPLES = PROJECT / "examples/databases"
HOME = SCRATCH / "home"
ADAM, EVE = "person-adam", "person-eve"


def home_with_extensions() -> None:
    """DuckDB finds extensions below HOME; it must not look for them on the network."""
    folder = HOME / f".duckdb/extensions/v{duckdb.__version__}" / duckdb.sql("PRAGMA platform").fetchone()[0]
    folder.mkdir(parents=True)
    for package in (duckdb_extension_ducklake, duckdb_extension_postgres_scanner):
        for file in Path(package.__file__).parent.glob(f"extensions/v{duckdb.__version__}/*"):
            shutil.copy(file, folder)
    os.environ["HOME"] = str(HOME)


class Copy:
    """One of the scripts, with a database of its own."""

    def __init__(self, name: str, script: str, address: str) -> None:
        self.name = name
        self.command = [sys.executable, str(EXAMPLES / script)]
        self.address = address

    def run(self, file: Path) -> int:
        """The days that it copied."""
        done = subprocess.run([*self.command, str(file), self.address], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{self.name}: {done.stdout}{done.stderr}"
        return int(re.match(r"(\d+) days copied", done.stdout)[1])

    def kill_often(self, file: Path) -> int:
        """Kills run after run, each a little later, until one ends by itself; returns how many it killed."""
        seconds, kills = 0.3, 0
        while True:
            nothing = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen([*self.command, str(file), self.address], **nothing)
            try:
                code = process.wait(seconds)
                assert code == 0, f"{self.name} ended with {code} after {kills} kills"
                return kills
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            seconds, kills = seconds * 1.5, kills + 1

    def differences(self, file: Path) -> int:
        """Rows that only the file or only the database has, as their values in the types of the file."""
        db = duckdb.connect()
        db.execute(f"SET TimeZone = 'UTC'; ATTACH '{file}' AS source (READ_ONLY)")
        columns = [(name, kind) for name, kind, *_ in db.execute("DESCRIBE source.events").fetchall()]
        source = "FROM source.events"
        if self.address.startswith("chdb:"):
            target = f"FROM '{clickhouse_rows(self.address)}'"
            # An array of ClickHouse is never null.
            lists = [f'coalesce("{name}", []) AS "{name}"' for name, kind in columns if kind.endswith("[]")]
            source = f"SELECT * REPLACE ({', '.join(lists)}) FROM source.events" if lists else source
        else:
            db.execute(f"ATTACH '{self.address}' AS target (READ_ONLY)")
            target = "FROM target.events"
        quoted = [(name.replace('"', '""'), kind) for name, kind in columns]
        values = ", ".join(f'CAST("{name}" AS {kind})' for name, kind in quoted)
        one, other = f"SELECT {values} FROM ({source})", f"SELECT {values} FROM ({target})"
        both = f"SELECT count(*) FROM (({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one}))"
        return db.execute(both).fetchone()[0]


def clickhouse_rows(address: str) -> Path:
    path = SCRATCH / "rows.parquet"
    read = (
        "import clickhouse_connect, pathlib, sys; client = clickhouse_connect.get_client(dsn=sys.argv[1]); "
        "pathlib.Path(sys.argv[2]).write_bytes(client.raw_query('SELECT * FROM events', fmt='Parquet'))"
    )
    subprocess.run([sys.executable, "-c", read, address, str(path)], check=True, timeout=120)
    return path


def forget(file: Path, config: Path, person: str) -> None:
    words = ["forget", "--config", str(config), "--in", "duckdb", str(file), "--purge-only", "--id", person]
    plan = run(*words)
    run(*words, "--execute", "--confirm", re.search(r"\bhash: ([0-9a-f]+)", plan)[1])


def life_of_a_file(copies: list[Copy], folder: Path, is_killed: bool, **settings: str) -> None:
    """What happens to a file in a month; after each of it the tables are equal to it again."""
    folder.mkdir()
    file, world = folder / "events.duckdb", World()
    adam = {"member_no": "adam", "n": "5", "price": "1.50", "tags": '["a","b"]', "is_new": "TRUE", "born": "1990-02-03"}
    eve = {"member_no": "eve", "n": "7", "text": 'quote " back \\ tick ` 한국'}
    for back in range(29, -1, -1):
        day = day_before(back)
        world.days[day] = [event(day, 0, ADAM, **adam), *(event(day, number, EVE, **eve) for number in range(1, 20))]

    def same(after: str, most_days: int) -> None:
        for copy in copies:
            if is_killed:
                how = f"killed {copy.kill_often(file)} times"
            else:
                days = copy.run(file)
                how = f"{days} days copied"
                assert 0 < days <= most_days, f"{copy.name} copies {days} days after {after}"
            assert copy.differences(file) == 0, f"{copy.name} differs after {after}"
            assert copy.run(file) == 0, f"{copy.name} copies days that did not change after {after}"
            print(f"  {copy.name}: the same after {after}, {how}")

    with world.served() as config:
        erasure = {"ledger_dir": str(folder / "ledger"), "by_column": "member_no", "profiles": False}
        path = write_config("databases.json", {**config, **settings, "erasure": erasure})
        sync = ["sync", "duckdb", str(file), "--config", str(path)]
        run(*sync)
        every_day = 32  # in Seoul the next day may have begun
        same("the first sync", every_day)

        # Another row, a column that is new and has an odd name, a row that is gone.
        world.days[day_before(1)].append(event(day_before(1), 30, ADAM, **{'new "column", `한국` \\': "1"}))
        world.days[day_before(2)].pop()
        run(*sync)
        same("two days that changed and a new column", 2)

        world.days[day_before(1)].append(event(day_before(1), 31, ADAM, n="a text"))
        run(*sync)
        same("a type that widened", every_day)

        run("prune", "duckdb", str(file), "--older-than", "20d", "--execute", "--config", str(path))
        forget(file, path, "eve")
        run(*sync)
        same("a prune and an erasure", every_day)


def bytes_are_gone(folder: Path, address: str) -> None:
    """After these three calls no file of the DuckLake has the erased person."""
    files = [path for path in folder.rglob("*.parquet") if EVE.encode() in path.read_bytes()]
    db = duckdb.connect()
    db.execute(f"ATTACH '{address}' AS mine")
    db.execute("CALL ducklake_expire_snapshots('mine', older_than => now())")
    db.execute("CALL ducklake_cleanup_old_files('mine', cleanup_all => true)")
    db.execute("CALL ducklake_delete_orphaned_files('mine', cleanup_all => true)")
    db.close()
    kept = [path for path in files if path.exists() and EVE.encode() in path.read_bytes()]
    assert files != [] and kept == [], f"{kept} still have rows of an erased person"
    print("  ducklake: no file has a row of the erased person")


def main() -> None:
    home_with_extensions()
    with contextlib.ExitStack() as stack:
        bin = _postgres.programs()
        if bin is None:
            print("databases: skipped: PostgreSQL, since there is no initdb")
        for timezone in (None, "Asia/Seoul"):
            print(f"timezone {timezone}")
            folder = SCRATCH / str(timezone).replace("/", "-")
            lake = f"ducklake:{folder / 'lake.ducklake'}"
            chdb = f"chdb://{folder / 'clickhouse'}"
            copies = [Copy("ducklake", "copy_days.py", lake), Copy("clickhouse", "copy_days_clickhouse.py", chdb)]
            if bin is not None:
                postgres = f"postgres:{stack.enter_context(_postgres.server(bin))}"
                copies.append(Copy("postgres", "copy_days.py", postgres))
            settings = {} if timezone is None else {"timezone": timezone}
            life_of_a_file(copies, folder, is_killed=timezone is None, **settings)
            bytes_are_gone(folder, lake)


main()
