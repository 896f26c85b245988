"""dfinery-elt in Airflow: copy this file beside your DAGs. For Airflow 3; it imports under 2.11 too.

What it reads from the environment of the worker:
  ELT_CLI         the command, default dfinery-elt
  ELT_CONFIG      a configuration file; without it the DFINERY_… variables are the configuration
  ELT_TARGET      the DuckDB file, default /data/events.duckdb; of a container: a path below its /data
  ELT_IMAGE       the image of the command line, default dfinery-elt
  ELT_DATA        the folder of the Docker host that is mounted at /data
  ELT_DOCKER_URL  Docker's API, default unix://var/run/docker.sock
  ELT_DOCKER_NETWORK  the containers' network, default Docker's own
Every DFINERY_… variable is a configuration key (docs/configuration.md), the token for instance
DFINERY_EXPORT_TOKEN; containers get them from the worker, too.

Exit codes become what Airflow knows: 3 is retried; 1, 2, 4 and 5 fail at once, because a retry cannot help.
"""

import json
import os
import re
import signal
import subprocess

try:
    from airflow.sdk import Asset, Param, dag, task
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
except ImportError:  # Airflow 2
    from airflow.datasets import Dataset as Asset
    from airflow.decorators import dag, task
    from airflow.exceptions import AirflowException, AirflowFailException
    from airflow.models.param import Param

try:  # Airflow 3.3
    from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
except ImportError:
    ExceptionRetryPolicy = None

__all__ = ["Asset", "EVENTS", "EXPORTS_POOL", "OPTIONS", "Param", "TARGET", "command", "dag", "run", "task"]

CLI = os.environ.get("ELT_CLI", "dfinery-elt").split()
CONFIG = os.environ.get("ELT_CONFIG", "")
TARGET = os.environ.get("ELT_TARGET", "/data/events.duckdb")
IMAGE = os.environ.get("ELT_IMAGE", "dfinery-elt")
DATA = os.environ.get("ELT_DATA", "/opt/dfinery/data")
DOCKER_URL = os.environ.get("ELT_DOCKER_URL", "unix://var/run/docker.sock")
DOCKER_NETWORK = os.environ.get("ELT_DOCKER_NETWORK") or None
# The claim of the pods' volume, as in examples/scheduling/cronjob.yaml.
CLAIM = "dfinery-data"

# What `verify` has found in order; its events carry the summary of the sync.
EVENTS = Asset("dfinery_events")
# The service allows five exports at once: airflow pools set dfinery_exports 5 'exports at the service'
EXPORTS_POOL = "dfinery_exports"

TRY_LATER = 3
# Seconds until a stopped command is killed; it needs 5 at most.
GRACE = 10


class TryLater(AirflowException):
    """Exit 3: quota, service, network, a lock or the disk; the next try goes on from what is there."""


if ExceptionRetryPolicy:

    class WillNotHelp(AirflowException):
        """Any other exit: no retry can help."""

    # The reason is kept with the task instance.
    RETRIES = {
        "retry_policy": ExceptionRetryPolicy(
            rules=[RetryRule(exception=WillNotHelp, action=RetryAction.FAIL, reason="the exit code says that no retry can help")]
        )
    }
else:

    class WillNotHelp(AirflowFailException):
        """Any other exit: no retry can help."""

    RETRIES = {}

# For `default_args` of a DAG. The pause between two tries is Airflow's default_task_retry_delay (5 minutes).
OPTIONS = {"retries": 5, **RETRIES}


def failure(code):
    """The exception for an exit code that is not 0."""
    if code == TRY_LATER:
        return TryLater("exit 3: try again later; the log says why")
    return WillNotHelp(f"exit {code}: the log says why")


def command(*words):
    """The words of one command, the configuration file among them where there is one."""
    config = ["--config", CONFIG] if CONFIG and words[0] in ("sync", "plan", "check", "forget") else []
    return [*words, *config, "--json"]


def run(*words):
    """Runs one command on the worker and returns the JSON of its last line; stderr goes to the task's log."""
    process = subprocess.Popen(
        [*CLI, *command(*words), "--log-format", "json"], stdout=subprocess.PIPE, text=True, preexec_fn=_end_with_parent
    )
    try:
        output, _ = process.communicate()
    except BaseException:  # the task is being killed: its command must not outlive it
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    print(output)
    if process.returncode != 0:
        raise failure(process.returncode)
    return last_json(output)


def _end_with_parent():
    """On Linux the command is stopped even when the task's process is killed outright."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    except (OSError, AttributeError):
        pass


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def settings():
    """The worker's configuration for a container: secrets that are in files here become values there."""
    found = {}
    for name, value in os.environ.items():
        if not name.startswith("DFINERY_"):
            continue
        if name.endswith("_FILE") and name != "DFINERY_SUPPRESSION_FILE":
            with open(value, encoding="utf-8") as file:
                found[name[: -len("_FILE")]] = file.read().rstrip("\n")
        else:
            found[name] = value
    return found


try:
    from airflow.providers.docker.exceptions import DockerContainerFailedException
    from airflow.providers.docker.operators.docker import DockerOperator
    from docker.types import Mount
except ImportError:  # without the provider there is no operator, and its DAG file defines no DAG
    DfineryDockerOperator = None
else:

    class DfineryDockerOperator(DockerOperator):
        """One command in a container of the image; its result is the JSON of the last line."""

        def __init__(self, *, words, **kwargs):
            super().__init__(
                image=IMAGE,
                command=command(*words),
                docker_url=DOCKER_URL,
                network_mode=DOCKER_NETWORK,
                mounts=[Mount(target="/data", source=DATA, type="bind")],
                mount_tmp_dir=False,
                auto_remove="force",
                **kwargs,
            )

        def execute(self, context):
            # Set when the task runs, so that no secret is in the serialized DAG.
            self._private_environment = settings()
            try:
                return last_json(super().execute(context))
            except DockerContainerFailedException as error:
                code = re.search(r"'StatusCode': (\d+)", str(error))
                raise failure(int(code[1]) if code else None) from error


try:
    from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
    from kubernetes.client import models as k8s
except ImportError:
    DfineryPodOperator = None
else:

    class DfineryPodOperator(KubernetesPodOperator):
        """One command in a pod of the image; its sidecar reads the result, which a shell writes into a file.

        The configuration is the Kubernetes secret `dfinery`, with the variables as its keys; /data is the claim CLAIM.
        """

        def __init__(self, *, words, **kwargs):
            super().__init__(
                image=IMAGE,
                cmds=["sh", "-c", 'exec dfinery-elt "$@" > /airflow/xcom/return.json', "dfinery-elt"],
                arguments=command(*words),
                env_from=[k8s.V1EnvFromSource(secret_ref=k8s.V1SecretEnvSource(name="dfinery"))],
                volumes=[
                    k8s.V1Volume(
                        name="data", persistent_volume_claim=k8s.V1PersistentVolumeClaimVolumeSource(claim_name=CLAIM)
                    ),
                    k8s.V1Volume(name="tmp", empty_dir=k8s.V1EmptyDirVolumeSource()),
                ],
                volume_mounts=[
                    k8s.V1VolumeMount(name="data", mount_path="/data"),
                    k8s.V1VolumeMount(name="tmp", mount_path="/tmp"),
                ],
                security_context=k8s.V1PodSecurityContext(run_as_non_root=True, run_as_user=1000, fs_group=1000),
                container_security_context=k8s.V1SecurityContext(
                    allow_privilege_escalation=False, read_only_root_filesystem=True
                ),
                do_xcom_push=True,
                # A deferred pod loses its result (apache/airflow#73117).
                deferrable=False,
                **kwargs,
            )

        def cleanup(self, pod, remote_pod, xcom_result=None, context=None):
            try:
                super().cleanup(pod, remote_pod, xcom_result, context)
            except AirflowException as error:
                code = exit_code_of(remote_pod, self.base_container_name)
                if code is None:
                    raise
                raise failure(code) from error


def exit_code_of(pod, container):
    """The code that a container of a pod ended with, other than 0, or None."""
    for status in (pod.status.container_statuses if pod and pod.status else None) or []:
        if status.name == container and status.state and status.state.terminated:
            return status.state.terminated.exit_code or None
    return None
