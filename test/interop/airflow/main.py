"""The example DAGs, as they are, in a real Airflow, against the simulator with its faults."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from datetime import datetime, timedelta, timezone
from pathlib import Path

from _airflow import OVER, Airflow
from _containers import docker_api
from _schedulers import cron, kubernetes, pods, systemd
from _service import PROGRAM, PROJECT, SCRATCH, check, finish, free_port, run, simulator

EXAMPLES = PROJECT / "examples/airflow"
DATA = SCRATCH / "data"
TARGET = DATA / "events.duckdb"
TOKEN = SCRATCH / "token"
PORT = free_port()
LAST = (datetime.now(timezone.utc) - timedelta(days=3)).date()
FIRST = LAST - timedelta(days=2)
# What the program asks for again by itself before it gives up with exit 3.
TRIES = 5
# What the program reads of the settings below; the others are the example's.
CONFIGURATION = ("DFINERY_BASE_URL", "DFINERY_SERVICE_ID", "DFINERY_EXPORT_TOKEN_FILE", "DFINERY_START_DATE", "DFINERY_END_DATE")


@contextlib.contextmanager
def service(scenario: dict | None = None, token: str = "demo-export-token"):
    """The simulator, always at the same address."""
    TOKEN.write_text(token)
    with simulator(PORT, events_per_day=200, **(scenario or {})):
        yield


def fresh() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    # The containers' user writes here.
    DATA.chmod(0o777)


HEALS = {"answers": [{"nth": list(range(1, TRIES + 1)), "status": 503}]}
STALLS = {"answers": [{"latency_ms": 24 * 3600 * 1000}]}


def first_state(airflow: Airflow, dag: str, run_id: str, task: str) -> tuple[str, int]:
    (one,) = airflow.tasks(dag, run_id)[task]
    return one["state"], one["try_number"]


def heals(airflow: Airflow, dag: str) -> None:
    with service(HEALS):
        run_id = airflow.start(dag)
        state = airflow.ended(dag, run_id)
    done, tries = first_state(airflow, dag, run_id, "sync")
    # One more where Airflow itself lost a task on a busy machine.
    check(f"{dag}: a 503 that heals is retried", state == done == "success" and tries >= 2, airflow.tasks(dag, run_id))
    (summary,) = airflow.results(dag, run_id, "sync")
    # A day that failed does not stop the others: the try that ended well may have read only what was left.
    wanted = {"next_from_date": (LAST + timedelta(days=1)).isoformat(), "exit": 0}
    check(f"{dag}: XCom in Airflow's database holds the summary", wanted.items() <= summary.items() and summary["rows"] > 0, summary)
    extras = [json.loads(extra) for (extra,) in airflow.query("SELECT extra FROM asset_event WHERE source_dag_id = ? AND source_run_id = ?", dag, run_id)]
    check(f"{dag}: the asset's event holds the summary", extras == [summary], extras)


def refused(airflow: Airflow, dag: str) -> None:
    with service(token="wrong"):
        run_id = airflow.start(dag)
        state = airflow.ended(dag, run_id)
    check(f"{dag}: a wrong token fails without a retry", (state, first_state(airflow, dag, run_id, "sync")) == ("failed", ("failed", 1)), airflow.tasks(dag, run_id))


def commands() -> list[int]:
    """Processes of the command line that work on the target here."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            if "sync" in words and str(TARGET) in words and "node" in words[0]:
                found.append(int(entry.name))
    return found


def killed(airflow: Airflow) -> None:
    dag = "dfinery_worker"
    with service(STALLS):
        run_id = airflow.start(dag)
        (command,) = airflow.until("the command runs", commands)
        # Until it has a folder for its downloads, there is nothing to leave behind.
        airflow.until("it downloads", lambda: list(SCRATCH.glob("dfinery-spool-*")))
        task = int((Path("/proc") / str(command) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(task, signal.SIGKILL)
        airflow.until("the command ends with its task", lambda: command not in commands(), 15)
        check("a killed task leaves no process behind", True)
    with service():
        state = airflow.ended(dag, run_id)
    check("and is made good by the next try", state == "success", airflow.tasks(dag, run_id))
    left = sorted(path.name for path in DATA.iterdir())
    check("with nothing beside the file", left == ["events.duckdb"], left)
    run("verify", "duckdb", str(TARGET))


def mapped(airflow: Airflow) -> None:
    dag = "dfinery_backfill"
    first = LAST - timedelta(days=9)
    with service():
        run_id = airflow.start(dag, {"first": first.isoformat(), "last": LAST.isoformat()})
        state = airflow.ended(dag, run_id)
    days = airflow.tasks(dag, run_id)["sync"]
    check("ten days are ten mapped tasks", state == "success" and len(days) == 10, (state, len(days)))
    run("verify", "duckdb", str(TARGET))
    cursor = max(summary["next_from_date"] or "" for summary in airflow.results(dag, run_id, "sync"))
    check("they end with one contiguous cursor, and verify", cursor == (LAST + timedelta(days=1)).isoformat(), cursor)


# A person reads before answering. An answer within the second can overtake the scheduler, which then fails the try.
READING_SECONDS = 10


def approver(airflow: Airflow, dag: str, run_id: str, address: str):
    """Answers the question once it has been open for a while, and again if Airflow asks it anew; how the run ended, or None."""
    opened: float | None = None

    def ended() -> str | None:
        nonlocal opened
        waits = airflow.tasks(dag, run_id)["approve"][0]["state"] == "awaiting_input"
        opened = (opened or time.monotonic()) if waits else None
        if opened is not None and time.monotonic() - opened > READING_SECONDS:
            airflow.call("PATCH", address, {"chosen_options": ["Approve"], "params_input": {}})
            opened = None
        state = airflow.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}")["state"]
        return state if state in OVER else None

    return ended


def forgotten(airflow: Airflow) -> None:
    dag = "dfinery_forget"
    people = DATA / "people.txt"
    people.write_text("".join(f"person-{n}\n" for n in range(3)))
    with service():
        run_id = airflow.start(dag, {"file": str(people)})
        address = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
        asked = airflow.until("somebody is asked", lambda: airflow.call("GET", address))
        (plan,) = airflow.results(dag, run_id, "plan")
        check("the plan is shown to the person", plan["hash"] in (asked["body"] or ""), asked)
        waiting = airflow.tasks(dag, run_id)["execute"][0]["state"]
        check("the execution waits for the approval", waiting is None and airflow.results(dag, run_id, "execute") == [], waiting)
        state = airflow.until("the approved run ended", approver(airflow, dag, run_id, address))
    (done,) = airflow.results(dag, run_id, "execute") or [{}]
    states = {task: [(one["state"], one["try_number"]) for one in tries] for task, tries in airflow.tasks(dag, run_id).items()}
    check("after it the people are deleted", (state, done.get("mode"), done.get("done")) == ("success", "executed", 3), (state, done, states))


def without_providers() -> None:
    """Every example is imported where neither provider is installed, and defines the DAGs that need none."""
    script = """if True:
        import importlib, sys
        # Not the packages themselves, which Airflow asks for what they provide.
        sys.modules.update({"airflow.providers.docker.operators": None, "airflow.providers.docker.exceptions": None})
        sys.modules.update({"airflow.providers.cncf.kubernetes.operators": None})
        sys.path.insert(0, sys.argv[1])
        for name in ("worker", "docker", "kubernetes", "backfill", "forget"):
            importlib.import_module(f"dfinery_{name}")
            print(name)
    """
    done = subprocess.run([sys.executable, "-c", script, str(EXAMPLES)], capture_output=True, text=True, timeout=120)
    check("every example is imported without its provider", done.stdout.split()[-5:] == ["worker", "docker", "kubernetes", "backfill", "forget"], done.stderr[-1000:])


def attempt(case, *words) -> None:
    """The other cases are worth their own result."""
    fresh()
    try:
        with service() if case is cron else contextlib.nullcontext():
            case(*words)
    except Exception:
        check(case.__name__, False, traceback.format_exc())


def main() -> None:
    if sys.platform != "linux":
        print("skipped: reads /proc")
        return
    with docker_api() as docker:
        settings = {
            "ELT_CLI": " ".join(PROGRAM),
            "ELT_TARGET": str(TARGET),
            "ELT_DATA": str(DATA),
            "DFINERY_BASE_URL": f"http://127.0.0.1:{PORT}",
            "DFINERY_SERVICE_ID": "demo-service",
            "DFINERY_EXPORT_TOKEN_FILE": str(TOKEN),
            "DFINERY_IMPORT_TOKEN": "demo-import-token",
            "DFINERY_LEDGER_DIR": str(SCRATCH / "ledger"),
            "DFINERY_START_DATE": FIRST.isoformat(),
            "DFINERY_END_DATE": LAST.isoformat(),
            "TMPDIR": str(SCRATCH),
            **docker,
        }
        attempt(cron, {name: value for name, value in settings.items() if name in CONFIGURATION})
        for case in (kubernetes, systemd, pods):
            attempt(case)
        attempt(without_providers)
        names = {"dfinery_worker", "dfinery_docker", "dfinery_kubernetes", "dfinery_backfill", "dfinery_forget"}
        with Airflow(EXAMPLES, settings).running() as airflow:
            airflow.dags(names)
            check("every example is imported", True)
            for dag in ("dfinery_worker", *(["dfinery_docker"] if docker else [])):
                attempt(heals, airflow, dag)
                attempt(refused, airflow, dag)
            for case in (killed, mapped, forgotten):
                attempt(case, airflow)
        if not docker:
            print("left out: the containers, for there is no engine here that reaches loopback")
    finish()


main()
