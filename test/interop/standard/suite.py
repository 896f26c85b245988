"""The CDK's suites for the connector whose folder is CONNECTOR_ROOT. All of them contain the tests of an image."""

import os
from pathlib import Path

from airbyte_cdk.test.standard_tests import DestinationTestSuiteBase, SourceTestSuiteBase, docker_base

ROOT = Path(os.environ["CONNECTOR_ROOT"])
BASE = SourceTestSuiteBase if ROOT.name.startswith("source-") else DestinationTestSuiteBase

# The registry of published connectors is not asked: these are in none, which is what it would answer.
docker_base.fetch_published_spec = lambda repository, registry: None


class TestStandard(BASE):
    @classmethod
    def get_connector_root_dir(cls) -> Path:
        return ROOT
