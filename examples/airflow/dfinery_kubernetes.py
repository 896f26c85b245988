"""The event export, hourly, in pods of the image. Needs apache-airflow-providers-cncf-kubernetes: without
it there is no such DAG, and no import error.

Rendered and checked in the project's tests, but not run there: they have no cluster.
"""

import os
from datetime import datetime

from dfinery_airflow import EXPORTS_POOL, OPTIONS, TARGET, DfineryPodOperator, dag

FILE = f"/data/{os.path.basename(TARGET)}"


@dag(schedule="@hourly", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1, default_args=OPTIONS)
def dfinery_kubernetes():
    DfineryPodOperator(
        task_id="sync",
        name="dfinery-sync",
        words=["sync", "duckdb", FILE, "--max-wait", "10m"],
        pool=EXPORTS_POOL,
    )


if DfineryPodOperator:
    dfinery_kubernetes()
