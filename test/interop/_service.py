"""The embedded service and the command line, for the suites here."""

import contextlib
import csv
import io
import json
import os
import subprocess
import urllib.request
from pathlib import Path

PROGRAM = ["node", os.environ["ELT_PROGRAM"]]
SCRATCH = Path(os.environ["SCRATCH"])


@contextlib.contextmanager
def simulator(**scenario: object):
    """Yields the source configuration of a running simulator."""
    path = SCRATCH / "scenario.json"
    path.write_text(json.dumps(scenario))
    command = [*PROGRAM, "simulate", "--port", "0", "--scenario", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(timeout=120)


def write_config(name: str, config: dict) -> Path:
    path = SCRATCH / name
    path.write_text(json.dumps({**config, "spool_dir": str(SCRATCH)}))
    return path


def run(*arguments: str) -> str:
    """Runs one command; returns its stdout, fails with its stderr."""
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def export(config: dict, first: str, last: str) -> list[dict[str, str]]:
    """The rows of one export as the service gives them, read by Python's own csv."""
    request = urllib.request.Request(
        f"{config['base_url']}/api/v1/export/event?service_id={config['service_id']}",
        data=json.dumps({"events_condition_type": "all", "from_date": first, "to_date": last}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {config['export_token']}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))
