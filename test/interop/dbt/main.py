"""The dbt project under examples/dbt builds and passes its tests, and its tables are the views that `models` makes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb

from _service import PROJECT, SCRATCH, run, simulator, write_config

MODELS = [
    "sessions", "users", "purchases", "purchase_items", "daily_active", "weekly_active", "monthly_active", "retention",
    "event_dictionary",
]


def build(project: Path, file: Path, *variables: str) -> None:
    environment = {**os.environ, "ELT_DUCKDB": str(file), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"}
    dbt = Path(sys.executable).with_name("dbt")
    done = subprocess.run(
        [str(dbt), "build", "--profiles-dir", ".", *variables], cwd=project, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def same(file: Path) -> None:
    with duckdb.connect(str(file), read_only=True) as connection:
        for model in MODELS:
            for one, other in (("analytics", "dbt"), ("dbt", "analytics")):
                extra = connection.sql(f"FROM {one}.{model} EXCEPT ALL FROM {other}.{model}").fetchall()
                assert extra == [], f"{len(extra)} rows of {one}.{model} are not in {other}.{model}, first {extra[0]}"
            rows = connection.sql(f"SELECT count(*) FROM dbt.{model}").fetchall()[0][0]
            print(f"  {model}: {rows} rows, the same")


def same_after_changes(project: Path, file: Path, path: Path, *variables: str) -> None:
    """The incremental model equals its query after a prune and a later sync, and reads no day that did not change."""
    run("prune", "duckdb", str(file), "--older-than", "20d", "--execute")
    run("sync", "duckdb", str(file), "--config", str(path))
    build(project, file, *variables)
    query = "SELECT event_date, df_event_name, count(*), count(DISTINCT df_unified_id) FROM event_logs GROUP BY ALL"
    built = "SELECT event_date, df_event_name, events, people FROM dbt.events_by_day"
    with duckdb.connect(str(file), read_only=True) as connection:
        for one, other in ((query, built), (built, query)):
            assert connection.sql(f"{one} EXCEPT ALL {other}").fetchall() == []
        print("  events_by_day: the same after a prune and another sync")


def main() -> None:
    project = SCRATCH / "dbt"
    shutil.copytree(PROJECT / "examples/dbt", project, ignore=shutil.ignore_patterns("target", "logs"))
    with simulator() as config:
        for timezone in (None, "Asia/Seoul"):
            file = SCRATCH / f"events-{timezone is not None}.duckdb"
            extra = {} if timezone is None else {"timezone": timezone}
            path = write_config("dfinery.json", {**config, **extra, "history_days": 30, "on_gap": "warn"})
            run("sync", "duckdb", str(file), "--config", str(path))
            run("models", "duckdb", str(file))
            variables = [] if timezone is None else ["--vars", f"{{timezone: {timezone}}}"]
            build(project, file, *variables)
            same(file)
            same_after_changes(project, file, path, *variables)


main()
