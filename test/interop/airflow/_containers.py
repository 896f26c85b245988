"""Docker's API for Airflow's operator, as CONTAINER_TOOLS serves it without a daemon: containers on the host's network."""

import contextlib
import os
import subprocess
import time
import urllib.request
from pathlib import Path

from _service import PROJECT, build_image, free_port


@contextlib.contextmanager
def docker_api():
    """Yields the variables of the example for containers; none where there is no engine."""
    tools = os.environ.get("CONTAINER_TOOLS")
    # The machine's own engine gives a container a network of its own, from which the simulator is out of reach.
    if tools is None:
        yield {}
        return
    os.environ["CONTAINER_TOOLS"] = str((PROJECT / tools).resolve())
    image = build_image("dfinery-elt", "Dockerfile")
    port = free_port()
    server = subprocess.Popen(
        [Path(os.environ["CONTAINER_TOOLS"]) / "docker-api", str(port)], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_ping", timeout=5).read()
                break
            time.sleep(0.2)
        yield {"ELT_IMAGE": image, "ELT_DOCKER_URL": f"tcp://127.0.0.1:{port}", "ELT_DOCKER_NETWORK": "host"}
    finally:
        server.terminate()
        server.wait(30)
