"""The event export, hourly, in containers of the image. Needs apache-airflow-providers-docker: without it
there is no such DAG, and no import error."""

import os
from datetime import datetime

from dfinery_airflow import EVENTS, EXPORTS_POOL, OPTIONS, TARGET, DfineryDockerOperator, dag, task

# In the container the file lies in its volume.
FILE = f"/data/{os.path.basename(TARGET)}"


@dag(schedule="@hourly", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1, default_args=OPTIONS)
def dfinery_docker():
    sync = DfineryDockerOperator(
        task_id="sync", words=["sync", "duckdb", FILE, "--max-wait", "10m"], pool=EXPORTS_POOL
    )
    verify = DfineryDockerOperator(task_id="verify", words=["verify", "duckdb", FILE])

    @task(outlets=[EVENTS])
    def publish(summary, outlet_events):
        outlet_events[EVENTS].extra = summary

    sync >> verify >> publish(sync.output)


if DfineryDockerOperator:
    dfinery_docker()
