"""PyAirbyte and the Python CDK's own models against both connectors, with the simulator as the service."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

os.environ |= {"AIRBYTE_OFFLINE_MODE": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
os.chdir(os.environ["SCRATCH"])

import airbyte
from airbyte_cdk.models import AirbyteMessageSerializer, DestinationSyncMode, SyncMode  # noqa: F401

from _service import SCRATCH, check, export, finish, simulator

BIN = Path(os.environ["ELT_PROGRAM"]).parent
SOURCE = str(BIN / "source-dfinery.js")
DESTINATION = str(BIN / "destination-dfinery.js")


def keys_of(rows: list[dict[str, str]]) -> set[str]:
    seen: Counter[str] = Counter()
    keys = set()
    for row in rows:
        name = row["df_event_detail_log_id"]
        seen[name] += 1
        keys.add(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return keys


def read_twice(config: dict, first: str, last: str) -> None:
    source = airbyte.get_source("source-dfinery", config=config, local_executable=SOURCE, streams="*")
    source.check()
    check("the source checks", True)
    streams = sorted(source.get_available_streams())
    check("its streams are found", streams == ["event_items", "event_logs", "events", "user_profiles"], streams)
    cache = airbyte.new_local_cache("interop", cache_dir=str(SCRATCH / "cache"), cleanup=False)
    days = [export(config, day, day) for day in span(first, last)]
    truth = set().union(*(keys_of(rows) for rows in days))
    logs = {row["df_event_log_id"] for rows in days for row in rows}
    for turn in ("first", "second"):
        result = source.read(cache=cache)
        found = {row["_key"] for row in result["events"]}
        check(f"the {turn} read holds every row once", found == truth and len(list(result["events"])) == len(truth), len(found ^ truth))
        check(f"the {turn} read holds every event once", len(list(result["event_logs"])) == len(logs))
        profiles = [row["df_unified_id"] for row in result["user_profiles"]]
        check(f"the {turn} read holds every profile once", len(profiles) == len(set(profiles)) > 0, len(profiles))
    kind = str(result["events"].to_pandas().dtypes["df_server_datetime"])
    check("times are timestamps", "datetime64" in kind, kind)


def span(first: str, last: str) -> list[str]:
    start, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    return [(start + timedelta(days=i)).date().isoformat() for i in range((end - start).days + 1)]


def messages(*arguments: str, stdin: str | None = None) -> list:
    done = subprocess.run([*arguments], capture_output=True, text=True, timeout=300, input=stdin)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr}")
    return [AirbyteMessageSerializer.load(json.loads(line)) for line in done.stdout.splitlines()]


def through_models(config: dict) -> list[str]:
    """The CDK's models take every message of every verb."""
    path = SCRATCH / "source.json"
    path.write_text(json.dumps(config))
    check("spec parses", any(m.spec for m in messages(SOURCE, "spec")))
    check("check parses", any(m.connectionStatus for m in messages(SOURCE, "check", "--config", str(path))))
    catalog = next(m.catalog for m in messages(SOURCE, "discover", "--config", str(path)) if m.catalog)
    configured = {
        "streams": [
            {
                "stream": {"name": s.name, "json_schema": s.json_schema, "supported_sync_modes": ["full_refresh", "incremental"]},
                "sync_mode": "full_refresh",
                "destination_sync_mode": "overwrite",
            }
            for s in catalog.streams
        ]
    }
    wanted = SCRATCH / "catalog.json"
    wanted.write_text(json.dumps(configured))
    told = messages(SOURCE, "read", "--config", str(path), "--catalog", str(wanted))
    counts = Counter(m.record.stream for m in told if m.record)
    check("read parses", counts["events"] > 0 and sum(1 for m in told if m.state) >= 3, counts)
    return sorted(name for s in catalog.streams for name in unwelcome(s.json_schema["properties"]))


def unwelcome(names) -> set[str]:
    """What PyAirbyte cannot hold: it lowers names and keeps Latin letters and digits only, so some are empty or meet."""
    taken: set[str] = set()
    out: set[str] = set()
    for name in sorted(names, key=lambda n: (not n.startswith(("df_", "_")), n)):
        short = re.sub(r"[^a-z0-9]", "_", name.lower())
        if not short.strip("_") or short in taken:
            out |= {name, f"df_items_{name}"}
        taken.add(short)
    return out


def forget(config: dict) -> None:
    settings = {
        "base_url": config["base_url"],
        "service_id": config["service_id"],
        "import_token": "demo-import-token",
        "ledger_dir": str(SCRATCH / "ledger"),
        "dry_run": False,
        "external_id_field": "id",
        "streams": ["people"],
    }
    destination = airbyte.get_destination("destination-dfinery", config=settings, local_executable=DESTINATION)
    destination.check()
    check("the destination checks", True)
    people = [f"person {n}" for n in range(25)]
    source = SCRATCH / "source-people"
    catalog = {"streams": [{"name": "people", "json_schema": {"type": "object", "properties": {"id": {"type": ["null", "string"]}}}, "supported_sync_modes": ["full_refresh"]}]}
    lines = [json.dumps({"type": "RECORD", "record": {"stream": "people", "data": {"id": p}, "emitted_at": 1700000000000}}) for p in people]
    script = f"""#!{sys.executable}
import json, sys
verb = sys.argv[1]
if verb == "spec": print(json.dumps({{"type": "SPEC", "spec": {{"connectionSpecification": {{"type": "object"}}}}}}))
if verb == "check": print(json.dumps({{"type": "CONNECTION_STATUS", "connectionStatus": {{"status": "SUCCEEDED"}}}}))
if verb == "discover": print(json.dumps({{"type": "CATALOG", "catalog": {catalog!r}}}))
if verb == "read": print({chr(10).join(lines)!r})
"""
    source.write_text(script)
    source.chmod(0o755)
    stub = airbyte.get_source("source-people", config={}, local_executable=str(source), streams="*")
    destination.write(stub, cache=False, state_cache=False, write_strategy="append")
    done = sum(1 for path in (SCRATCH / "ledger").glob("*.jsonl") for line in path.read_text().splitlines() if '"done"' in line and '"outcome"' in line)
    check("every person was deleted, and is in the ledger", done == len(people), done)


def main() -> None:
    last = (datetime.now(timezone.utc) - timedelta(days=3)).date()
    first = (last - timedelta(days=3)).isoformat()
    with simulator(events_per_day=150) as config:
        span_of = {"start_date": first, "end_date": last.isoformat()}
        scoped = {**config, **span_of, "user_profiles": True, "spool_dir": str(SCRATCH)}
        unnamed = through_models(scoped)
        without = {"properties": unnamed, "properties_condition_type": "exclude"} if unnamed else {}
        read_twice({**scoped, **without}, first, last.isoformat())
        forget(config)
    finish()


main()
