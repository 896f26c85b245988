"""The Python CDK's standard tests against the images of both connectors, with the simulator as the service."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree

import yaml
from airbyte_cdk.models.connector_metadata import MetadataFile
from airbyte_connector_models.metadata.v0.connector_metadata_definition_v0 import ConnectorMetadataDefinitionV0

from _service import PROJECT, SCRATCH, build_image, simulator

HERE = Path(__file__).parent
os.environ["PATH"] = f"{PROJECT / 'test/images/engine'}:{os.environ['PATH']}"
if "CONTAINER_TOOLS" in os.environ:
    os.environ["CONTAINER_TOOLS"] = str((PROJECT / os.environ["CONTAINER_TOOLS"]).resolve())
os.environ["DO_NOT_TRACK"] = "1"

# Why a test may be skipped; any other reason fails, so that nothing is left out unseen.
REASONS = {
    "source-dfinery": ["does not run for scenario", "has no published version", "not in default scenarios list"],
    "destination-dfinery": ["does not run for scenario", "has no published version", "for destination connector"],
}
# How often each test passes, which is once for every configuration that acceptance-test-config.yml lists for it.
WANTED = {
    "source-dfinery": {
        "test_docker_image_build_and_spec": 1,
        "test_docker_image_build_and_config_matches_spec": 4,
        "test_docker_image_build_and_check": 5,
        "test_docker_image_build_and_discover": 2,
        "test_docker_image_build_and_read": 1,
        "test_spec": 1,
        "test_config_matches_spec": 4,
        "test_check": 5,
        "test_discover": 2,
        "test_basic_read": 2,
        "test_fail_read_with_bad_catalog": 2,
    },
    "destination-dfinery": {
        "test_docker_image_build_and_spec": 1,
        "test_docker_image_build_and_config_matches_spec": 2,
        "test_docker_image_build_and_check": 3,
        "test_config_matches_spec": 2,
        "test_check": 3,
    },
}


def engine() -> bool:
    """Whether images can be built and run here."""
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "info"], capture_output=True, timeout=60).returncode == 0


def secrets(name: str, service: dict) -> dict[str, dict]:
    """The files that acceptance-test-config.yml expects in secrets/: three days, under way on the embedded service."""
    address = {"base_url": service["base_url"], "service_id": service["service_id"]}
    if name.startswith("destination-"):
        return {"config": {**address, "import_token": "demo-import-token"}}
    last = (datetime.now(timezone.utc) - timedelta(days=3)).date()
    days = {"start_date": (last - timedelta(days=2)).isoformat(), "end_date": last.isoformat()}
    good = {**address, **days, "export_token": service["export_token"]}
    return {
        "config": good,
        "zoned_config": {**good, "timezone": "Asia/Seoul"},
        "wrong_token_config": {**good, "export_token": "wrong-export-token-4711"},
    }


def folder(name: str, service: dict) -> Path:
    """A copy of the connector's folder, with secrets/."""
    root = SCRATCH / name
    shutil.copytree(PROJECT / "connectors" / name, root)
    (root / "secrets").mkdir()
    for file, config in secrets(name, service).items():
        (root / "secrets" / f"{file}.json").write_text(json.dumps(config))
    return root


def read_metadata(root: Path) -> None:
    """Both models: the CDK's few fields, and the platform's own of the whole file."""
    path = root / "metadata.yaml"
    MetadataFile.from_file(path)
    ConnectorMetadataDefinitionV0.model_validate(yaml.safe_load(path.read_text()))
    print(f"ok     {root.name}/metadata.yaml fits the platform's model")


def run_suite(image: str, root: Path) -> tuple[int, Counter[str], list[str]]:
    """Pytest's exit code, how often each test passed, and the reasons of what was skipped."""
    report = SCRATCH / f"{root.name}.xml"
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-v", "-rs", "--tb=short", "--durations=8", "--no-header", "-p", "no:cacheprovider",
            "-o", "markers=requires_creds", "-W", "ignore:This class is experimental",
            "-W", "error::airbyte_cdk.test.standard_tests.DiscoveredCatalogWarning", f"--rootdir={HERE}",
             f"--junitxml={report}", f"--connector-image={image}", "--read-from-streams=all",
            str(HERE / "suite.py"),
        ],
        cwd=root, env={**os.environ, "CONNECTOR_ROOT": str(root), "COLUMNS": "120"}, timeout=900,
    )  # fmt: skip
    passed: Counter[str] = Counter()
    reasons = []
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            reasons.append(skipped.attrib["message"])
        elif case.find("failure") is None and case.find("error") is None:
            passed[case.attrib["name"].split("[")[0]] += 1
    return done.returncode, passed, reasons


def try_connector(name: str, service: dict) -> list[str]:
    """What is wrong with it, in sentences."""
    image = build_image(name, f"connectors/{name}/Dockerfile")
    root = folder(name, service)
    read_metadata(root)
    code, passed, reasons = run_suite(image, root)
    wrong = [] if code == 0 else [f"{name}: pytest ended with {code}"]
    for reason in reasons:
        if not any(known in reason for known in REASONS[name]):
            wrong.append(f"{name}: skipped for a reason that is not expected: {reason}")
    for test, times in WANTED[name].items():
        if passed[test] != times:
            wrong.append(f"{name}: {test} passed {passed[test]} times, wanted {times}")
    return wrong


def main() -> None:
    if not engine():
        print("skipped: no container engine here: neither a docker daemon nor a folder in CONTAINER_TOOLS")
        return
    wrong = []
    with simulator(events_per_day=300) as service:
        for name in WANTED:
            wrong += try_connector(name, service)
    if wrong:
        sys.exit("\n".join(wrong))


main()
