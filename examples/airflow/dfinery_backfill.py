"""Days read again or for the first time, one mapped task a day; started by hand with the first and the last day.

A place is locked only while a day is committed, so downloads run side by side. The pool holds all tasks that export to what
the service allows at once.
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
        return [day["from_date"] for day in run("plan", "duckdb", TARGET, *days)["days"]]

    @task(pool=EXPORTS_POOL)
    def sync(day):
        return run("sync", "duckdb", TARGET, "--from", day, "--to", day, "--max-wait", "10m")

    @task(outlets=[EVENTS])
    def verify(summaries, outlet_events):
        run("verify", "duckdb", TARGET)
        outlet_events[EVENTS].extra = list(summaries)[-1]

    verify(sync.expand(day=plan()))


dfinery_backfill()
