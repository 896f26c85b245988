"""The examples for other schedulers, and the pods of the Kubernetes DAG, each tried as far as it can be here."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from unittest.mock import MagicMock

import yaml
from croniter import croniter
from kubernetes import client

from _service import PROGRAM, PROJECT, SCRATCH, check

EXAMPLES = PROJECT / "examples"
SCHEDULING = EXAMPLES / "scheduling"
MODELS = {"CronJob": "V1CronJob", "PersistentVolumeClaim": "V1PersistentVolumeClaim"}


def paths(value, at: str = "") -> set[str]:
    """Every leaf of a document, by its path."""
    if isinstance(value, dict):
        return {path for key, inner in value.items() for path in paths(inner, f"{at}/{key}")} or {at}
    if isinstance(value, list):
        return {path for i, inner in enumerate(value) for path in paths(inner, f"{at}/{i}")} or {at}
    return {at}


def kubernetes() -> None:
    api = client.ApiClient()
    for document in yaml.safe_load_all((SCHEDULING / "cronjob.yaml").read_text()):
        read = api.deserialize(SimpleNamespace(data=json.dumps(document)), MODELS[document["kind"]])
        unknown = paths(document) - paths(api.sanitize_for_serialization(read))
        # An empty object is a value of its own that leaves no leaf behind.
        unknown = {path for path in unknown if not path.endswith("/emptyDir")}
        check(f"{document['kind']}: every field is known to Kubernetes", not unknown, unknown)


def cron(environment: dict[str, str]) -> None:
    path, line = [line for line in (SCHEDULING / "dfinery.cron").read_text().splitlines() if line and not line.startswith("#")]
    check("the cron file sets PATH", path.startswith("PATH=/"), path)
    *when, _user, command = line.split(None, 6)
    check("the cron line has a time", croniter.is_valid(" ".join(when)), when)
    places = {
        "/etc/dfinery/environment": SCRATCH / "environment",
        "/run/lock/dfinery": SCRATCH / "lock",
        "/var/lib/dfinery/events.duckdb": SCRATCH / "cron.duckdb",
        "/var/log/dfinery/sync.log": SCRATCH / "cron.txt",
    }
    for written, here in places.items():
        check(f"the cron line names {written}", written in command)
        command = command.replace(written, str(here))
    beats = []

    class Switch(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            beats.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_) -> None:
            pass

    switch = HTTPServer(("127.0.0.1", 0), Switch)
    Thread(target=switch.serve_forever, daemon=True).start()
    given = {**environment, "HEARTBEAT_URL": f"http://127.0.0.1:{switch.server_port}/beat"}
    (SCRATCH / "environment").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    commands = SCRATCH / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "dfinery-elt").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (commands / "dfinery-elt").chmod(0o755)
    done = subprocess.run(["sh", "-c", command], env={"PATH": f"{commands}:{os.environ['PATH']}"}, timeout=300)
    check("a success is told to the dead man's switch, once", beats == ["/beat"], beats)
    broken = command.replace("sync duckdb", "sync nothing")
    subprocess.run(["sh", "-c", broken], env={"PATH": f"{commands}:{os.environ['PATH']}"}, timeout=300)
    check("a failure is not", beats == ["/beat"], beats)
    switch.shutdown()
    check("the cron command syncs", done.returncode == 0 and (SCRATCH / "cron.duckdb").exists(), (SCRATCH / "cron.txt").read_text()[-1000:])


def systemd() -> None:
    if not shutil.which("systemd-analyze"):
        print("left out: there is no systemd-analyze here")
        return
    units = [str(SCHEDULING / name) for name in ("dfinery.service", "dfinery.timer")]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=120)
    ours = [line for line in done.stderr.splitlines() if "dfinery" in line]
    check("systemd takes the service and the timer", done.returncode == 0 and not ours, done.stderr[-1000:])


def pods() -> None:
    """The pod of the DAG as it would be sent, and what its exit codes become."""
    sys.path.insert(0, str(EXAMPLES / "airflow"))
    module = importlib.import_module("dfinery_airflow")
    operator = module.DfineryPodOperator(task_id="sync", name="dfinery-sync", words=["sync", "duckdb", "/data/events.duckdb"])
    # There is no cluster to ask.
    hook = MagicMock(is_in_cluster=False, default_namespace="default")
    hook.get_namespace.return_value = "default"
    hook.get_xcom_sidecar_container_image.return_value = "alpine"
    hook.get_xcom_sidecar_container_resources.return_value = None
    operator.__dict__["hook"] = hook
    pod = client.ApiClient().sanitize_for_serialization(operator.build_pod_request_obj())
    base, sidecar = pod["spec"]["containers"]
    check("the pod runs the command, with the file for its sidecar", base["args"][:3] == ["sync", "duckdb", "/data/events.duckdb"] and "> /airflow/xcom/return.json" in base["command"][2], base)
    check("the pod's root is read-only and its user is no root", base["securityContext"]["readOnlyRootFilesystem"] and pod["spec"]["securityContext"]["runAsUser"] == 1000)
    mounts = {mount["mountPath"] for mount in base["volumeMounts"]}
    check("the pod has /data, /tmp and the sidecar's folder", mounts >= {"/data", "/tmp", "/airflow/xcom"} and "xcom" in sidecar["name"], mounts)
    check("the pod is not deferred", operator.deferrable is False)
    for code, wanted in ((3, module.TryLater), (1, module.WillNotHelp), (2, module.WillNotHelp), (4, module.WillNotHelp), (5, module.WillNotHelp)):
        found = raised(operator, code)
        check(f"exit {code} of a pod is {wanted.__name__}", isinstance(found, wanted), repr(found))


def raised(operator, code: int):
    terminated = client.V1ContainerStateTerminated(exit_code=code)
    status = client.V1ContainerStatus(
        name="base", image="x", image_id="x", ready=False, restart_count=0, state=client.V1ContainerState(terminated=terminated)
    )
    ended = client.V1Pod(metadata=client.V1ObjectMeta(name="x"), spec=client.V1PodSpec(containers=[]), status=client.V1PodStatus(phase="Failed", container_statuses=[status]))
    operator.patch_already_checked = operator.process_pod_deletion = lambda *_, **__: None
    operator._read_pod_container_states = operator._read_pod_events = lambda *_, **__: None
    try:
        operator.cleanup(ended, ended)
    except Exception as error:  # the test looks at whichever it is
        return error
    return None
