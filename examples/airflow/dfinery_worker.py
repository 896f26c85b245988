"""The event export, hourly, by the command line on the worker: one task reads all that is new, one verifies it."""

from datetime import datetime

from dfinery_airflow import EVENTS, EXPORTS_POOL, OPTIONS, TARGET, dag, run, task


@dag(schedule="@hourly", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1, default_args=OPTIONS)
def dfinery_worker():
    @task(pool=EXPORTS_POOL)
    def sync():
        return run("sync", "duckdb", TARGET, "--max-wait", "10m")

    @task(outlets=[EVENTS])
    def verify(summary, outlet_events):
        run("verify", "duckdb", TARGET)
        outlet_events[EVENTS].extra = summary

    verify(sync())


dfinery_worker()
