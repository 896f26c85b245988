"""The embedded service, the command line and its image, and what a suite tells, for the suites here."""

import contextlib
import csv
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PROGRAM = ["node", os.environ["ELT_PROGRAM"]]
SCRATCH = Path(os.environ["SCRATCH"])
PROJECT = Path(__file__).resolve().parents[2]
FAILED: list[str] = []


def check(name: str, holds: bool, detail: object = "") -> None:
    print(f"{'ok    ' if holds else 'FAILED'} {name}{'' if holds else f': {detail}'}", flush=True)
    if not holds:
        FAILED.append(name)


def check_none(name: str, problems) -> None:
    """Checks that there are no problems; tells the first of them."""
    problems = list(problems)
    check(name, not problems, "\n         ".join([f"{len(problems)} differences", *problems[:5]]))


def finish() -> None:
    if FAILED:
        sys.exit(f"{len(FAILED)} of the checks failed: {', '.join(FAILED)}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def simulator(port: int = 0, **scenario: object):
    """Yields the source configuration of a running simulator."""
    path = SCRATCH / "scenario.json"
    path.write_text(json.dumps(scenario))
    command = [*PROGRAM, "simulate", "--port", str(port), "--scenario", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(timeout=120)


def build_image(name: str, dockerfile: str) -> str:
    """Builds an image with the engine of test/images; returns its name."""
    image = f"localhost/{name}"
    environment = {**os.environ, "PATH": f"{PROJECT / 'test/images/engine'}:{os.environ['PATH']}"}
    # What it needs comes over the network, which may hiccup.
    for pause in (5, 20, None):
        done = subprocess.run(
            ["docker", "build", "-f", dockerfile, "-t", image, "."],
            cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        if done.returncode == 0:
            return image
        if pause is not None:
            time.sleep(pause)
    raise AssertionError(f"{image} was not built: {done.stdout[-2000:]}{done.stderr[-2000:]}")


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
