"""People forgotten at the service, after somebody has looked at the plan: plan, approval, execution.

Started by hand with the file of their external IDs. The hash of the plan covers exactly that list: if the file changes
while the plan waits, nothing is deleted. The configuration is the file ELT_CONFIG, with the places of `erasure`; without it
the DFINERY_… variables (docs/configuration.md).
"""

from datetime import datetime

from dfinery_airflow import OPTIONS, Param, dag, run, task

try:  # Airflow 3.1
    from airflow.providers.standard.operators.hitl import ApprovalOperator
except ImportError:
    ApprovalOperator = None


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args=OPTIONS,
    params={
        "file": Param("/data/forget.txt", type="string", description="One external ID a line"),
        "confirm": Param("", type="string"),
    },
)
def dfinery_forget():
    @task
    def plan(params):
        return run("forget", "--file", params["file"])

    @task
    def execute(planned, params):
        return run("forget", "--file", params["file"], "--execute", "--confirm", planned["hash"])

    planned = plan()
    if ApprovalOperator:
        approve = ApprovalOperator(
            task_id="approve",
            subject="Delete these people for good?",
            body="{{ ti.xcom_pull(task_ids='plan') | tojson(indent=2) }}",
        )
    else:

        @task.short_circuit
        def approve(planned, params):
            """Airflow 2 asks nobody: start the DAG again with the hash of the plan as `confirm`."""
            return params["confirm"] == planned["hash"]

        approve = approve(planned)
    planned >> approve >> execute(planned)


dfinery_forget()
