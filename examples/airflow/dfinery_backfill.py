"""Days read anew or for the first time, one mapped task a window; started by hand with the first and the last day.

A DuckDB file has one writer, so its windows go one after another; the pool holds all tasks that export to what the
service allows at once. For a Delta table leave max_active_tis_per_dag out: its windows are committed side by side.
"""

from datetime import datetime

from dfinery_airflow import EVENTS, EXPORTS_POOL, OPTIONS, TARGET, Param, dag, run, task


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args=OPTIONS,
    params={"first": Param("", type="string"), "last": Param("", type="string")},
)
def dfinery_backfill():
    @task
    def plan(params):
        days = [word for name, day in (("--from", params["first"]), ("--to", params["last"])) if day for word in (name, day)]
        windows = run("plan", "--duckdb", TARGET, *days)["windows"]
        return [{"first": window["first"], "last": window["last"]} for window in windows]

    @task(pool=EXPORTS_POOL, max_active_tis_per_dag=1)
    def sync(window):
        return run("sync", "duckdb", TARGET, "--from", window["first"], "--to", window["last"], "--max-wait", "10m")

    @task(outlets=[EVENTS])
    def verify(summaries, outlet_events):
        run("verify", "duckdb", TARGET)
        outlet_events[EVENTS].extra = list(summaries)[-1]

    verify(sync.expand(window=plan()))


dfinery_backfill()
