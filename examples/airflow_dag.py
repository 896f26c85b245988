"""One mapped task for each window of the event export.

`plan` asks nobody: it reads the cursor in the DuckDB file and lists the windows. Each mapped task reads exactly its days
(--from, --to) and leaves its summary in the file of --xcom. Windows may run in any order and be run again: rows are
replaced by key, and the cursor moves over what is contiguous.

Set the Airflow variables or environment below; the token comes from DFINERY_EXPORT_TOKEN (or DFINERY_EXPORT_TOKEN_FILE).
"""

import json
import os
import subprocess
import tempfile
from datetime import datetime, timedelta

from airflow.decorators import dag, task
from airflow.exceptions import AirflowException, AirflowFailException

CLI = os.environ.get("DFINERY_CLI", "dfinery-elt").split()
CONFIG = os.environ.get("DFINERY_CONFIG", "/opt/dfinery/dfinery.json")
TARGET = os.environ.get("DFINERY_TARGET", "/opt/dfinery/events.duckdb")

TRY_LATER = 3


def run(*arguments):
    """Runs the command line; stderr goes to the task's log. Only exit 3 is worth another try."""
    done = subprocess.run([*CLI, *arguments, "--log-format", "json"], stdout=subprocess.PIPE, text=True)
    if done.returncode == TRY_LATER:
        raise AirflowException("try again later: quota, service, network, lock or disk; see the log")
    if done.returncode != 0:
        raise AirflowFailException(f"exit {done.returncode}: see the log")
    return done.stdout


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 5, "retry_delay": timedelta(minutes=10)},
    tags=["dfinery"],
)
def dfinery_events():
    @task
    def plan():
        windows = json.loads(run("plan", "--config", CONFIG, "--duckdb", TARGET, "--json"))["windows"]
        return [{"first": window["first"], "last": window["last"]} for window in windows]

    # One file has one writer, so its windows go one after another.
    @task(max_active_tis_per_dag=1)
    def sync(window):
        with tempfile.TemporaryDirectory() as folder:
            summary = os.path.join(folder, "return.json")
            days = ["--from", window["first"], "--to", window["last"]]
            run("sync", "duckdb", TARGET, "--config", CONFIG, *days, "--max-wait", "10m", "--xcom", summary)
            with open(summary, encoding="utf-8") as file:
                return json.load(file)

    @task(trigger_rule="none_failed")
    def verify(summaries):
        run("verify", "duckdb", TARGET)
        summaries = list(summaries)
        print(f"{sum(s['rows'] for s in summaries)} rows in {sum(s['windows'] for s in summaries)} windows")

    verify(sync.expand(window=plan()))


dfinery_events()
