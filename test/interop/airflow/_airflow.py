"""A real Airflow for the suite here: its processes, its HTTP API, and its database."""

import contextlib
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from _service import SCRATCH, free_port

HOME = SCRATCH / "airflow"
BIN = Path(sys.executable).parent
# How long one run of a DAG may take.
RUN_SECONDS = 900
OVER = ("success", "failed")


class Airflow:
    def __init__(self, dags: Path, settings: dict[str, str]):
        self.port = free_port()
        self.token = ""
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DFINERY_", "AIRFLOW"))},
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(HOME),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            # Runs begin when the suite says so, not with the hour.
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{self.port}",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            **settings,
        }
        self.processes: list[subprocess.Popen] = []

    def cli(self, *words: str) -> None:
        done = subprocess.run([BIN / "airflow", *words], env=self.env, capture_output=True, text=True, timeout=240)
        if done.returncode != 0:
            raise AssertionError(f"airflow {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-4000:]}")

    @contextlib.contextmanager
    def running(self):
        self.cli("db", "migrate")
        self.cli("pools", "set", "dfinery_exports", "5", "exports at the service")
        try:
            for words in (
                ("api-server", "--port", str(self.port), "--host", "127.0.0.1", "--workers", "1"),
                ("scheduler",),
                ("dag-processor",),
            ):
                log = (SCRATCH / f"{words[0]}.log").open("w")
                process = subprocess.Popen(
                    [BIN / "airflow", *words], env=self.env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )
                self.processes.append(process)
            self.until("the API answers", lambda: self.get_token() or True, 240)
            yield self
        finally:
            for process in self.processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            for process in self.processes:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)

    def get_token(self) -> None:
        self.token = self.call("GET", "/auth/token")["access_token"]

    def call(self, method: str, path: str, body: dict | None = None) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {self.token}"} if self.token else {})},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"{}")

    def until(self, what: str, holds, seconds: float = RUN_SECONDS):
        end = time.monotonic() + seconds
        last: object = None
        while time.monotonic() < end:
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(f"{process.args} ended: {self.logs()}")
            try:
                found = holds()
                if found:
                    return found
            except (OSError, KeyError, urllib.error.HTTPError) as error:
                last = error
            time.sleep(0.5)
        raise AssertionError(f"not within {seconds} s: {what} ({last}) {self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-3000:]}" for path in SCRATCH.glob("*.log"))

    def dags(self, names: set[str]) -> None:
        """Waits until they are all there, and switches them on; none may fail to import."""
        self.until("the DAGs are there", lambda: names <= {one["dag_id"] for one in self.call("GET", "/api/v2/dags?limit=50")["dags"]})
        errors = self.call("GET", "/api/v2/importErrors")["import_errors"]
        if errors:
            raise AssertionError(errors)

    def start(self, dag: str, conf: dict | None = None) -> str:
        self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
        body = {"logical_date": None, "conf": conf or {}}
        return self.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"]

    def ended(self, dag: str, run: str) -> str:
        state = lambda: self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run}")["state"]  # noqa: E731
        return self.until(f"{dag} {run} ended", lambda: state() in OVER and state())

    def tasks(self, dag: str, run: str) -> dict[str, list[dict]]:
        out: dict[str, list[dict]] = {}
        for one in self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances?limit=100")["task_instances"]:
            out.setdefault(one["task_id"], []).append(one)
        return out

    def query(self, sql: str, *values: str) -> list[tuple]:
        """Straight out of Airflow's own database."""
        with contextlib.closing(sqlite3.connect(f"file:{HOME / 'airflow.db'}?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(sql, values).fetchall()

    def results(self, dag: str, run: str, task: str) -> list[dict]:
        rows = self.query(
            "SELECT value FROM xcom WHERE dag_id = ? AND run_id = ? AND task_id = ? AND key = 'return_value' ORDER BY map_index",
            dag, run, task,
        )  # fmt: skip
        values = [json.loads(value) for (value,) in rows]
        return [json.loads(value) if isinstance(value, str) else value for value in values]
