"""A source of the Airbyte Python CDK: one stream, a dict a row."""

import csv
import io
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from airbyte_cdk.entrypoint import launch
from airbyte_cdk.sources import AbstractSource
from airbyte_cdk.sources.streams import Stream
from service import DAYS, KEY, export


def rows(day: str) -> csv.DictReader:
    return csv.DictReader(io.TextIOWrapper(export(day).raw, encoding="utf-8", newline=""))


class Events(Stream):
    name = "events"
    primary_key = KEY

    def get_json_schema(self) -> Mapping[str, Any]:
        names = rows(DAYS[0]).fieldnames or []
        return {"type": "object", "properties": {name: {"type": ["null", "string"]} for name in names}}

    def stream_slices(self, **_: Any) -> Iterable[Mapping[str, Any]]:
        yield from ({"day": day} for day in DAYS)

    def read_records(self, sync_mode, cursor_field=None, stream_slice=None, stream_state=None):
        yield from rows(stream_slice["day"])


class Source(AbstractSource):
    def spec(self, *_: Any):
        from airbyte_cdk.models import ConnectorSpecification

        return ConnectorSpecification(connectionSpecification={"type": "object", "properties": {}})

    def check_connection(self, logger, config):
        return True, None

    def streams(self, config: Mapping[str, Any]) -> list[Stream]:
        return [Events()]


if __name__ == "__main__":
    launch(Source(), sys.argv[1:])
