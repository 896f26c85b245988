"""Every verb of the standard tests runs in the image: those for Python classes too, which get one here."""

import json
import os
import subprocess

import pytest
from airbyte_cdk.test import entrypoint_wrapper

pytest_plugins = ["airbyte_cdk.test.standard_tests.pytest_hooks"]


def in_the_image(source, args, expecting_exception=None, *, expected_outcome=None):
    """Stands for the CDK's entry point: `docker run IMAGE verb …`, stricter than the suites' own way of calling it."""
    volumes, inner = [], []
    for name, value in zip([None, *args], args):
        if name in ("--config", "--catalog", "--state"):
            inside = f"/secrets/{name[2:]}.json"
            volumes += ["-v", f"{os.path.abspath(value)}:{inside}:ro"]
            value = inside
        inner.append(value)
    command = ["docker", "run", "--rm", *volumes, source.image, *inner]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    messages = done.stdout.split("\n")[:-1]
    assert done.stderr == "", f"{args[0]} wrote to stderr: {done.stderr[-2000:]}"
    types = [json.loads(line)["type"] for line in messages]
    told = entrypoint_wrapper.EntrypointOutput(messages=messages, command=command, stderr=done.stderr)
    assert (done.returncode != 0) == bool(told.errors), f"{args[0]} ended with {done.returncode} after {types[-5:]}"
    return told


class Image:
    """What the suites take for a connector object."""

    def __init__(self, image: str) -> None:
        self.image = image

    def spec(self, logger) -> None:
        raise NotImplementedError("the image has its own")


@pytest.fixture(autouse=True)
def _image_in_place_of_a_class(request, monkeypatch):
    image = request.config.getoption("--connector-image")
    monkeypatch.setattr(entrypoint_wrapper, "_run_command", in_the_image)
    if request.cls is not None:
        monkeypatch.setattr(request.cls, "create_connector", classmethod(lambda cls, scenario: Image(image)))
