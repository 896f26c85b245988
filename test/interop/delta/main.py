"""A Delta table on a disk and in an object store: every reader sees what `sync duckdb` of the same exports holds."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).parent))
from _readers import read_deltalake, read_duckdb, read_polars, spark_reader  # noqa: E402
from _service import PROGRAM, SCRATCH, check_none, finish, simulator, write_config  # noqa: E402
from _store import objects_with, store  # noqa: E402
from _truth import differences, in_duckdb  # noqa: E402


def program(environment: dict[str, str] | None, *arguments: str, code: int = 0) -> str:
    command = [*PROGRAM[:1], "--no-warnings", *PROGRAM[1:], *arguments]
    done = subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Place:
    """A place with Delta tables, and a DuckDB file that was loaded with the same exports."""

    def __init__(self, label: str, url: str, config: Path, environment: dict[str, str] | None, readers: dict):
        self.label, self.url, self.config, self.environment, self.readers = label, url, config, environment, readers
        self.file = SCRATCH / f"{label.replace('/', '-').replace(' ', '-')}.duckdb"

    def sync(self, first: str, last: str) -> None:
        span = ["--config", str(self.config), "--from", first, "--to", last]
        program(self.environment, "sync", "delta", self.url, *span)
        program(None, "sync", "duckdb", str(self.file), *span)

    def compare(self, after: str, readers=None) -> None:
        truth = in_duckdb(self.file)
        for name, read in (readers or self.readers).items():
            self.compare_one(f"{self.label}, {after}, {name}", read, truth, None)
        check_none(f"{self.label}, {after}, verify", self.verify())

    def compare_one(self, label: str, read, truth: dict, version: int | None) -> None:
        try:
            rows = read(f"{self.url}/events", version, self.environment)
        except Exception as error:  # a reader that cannot read is a finding like any other
            check_none(label, [f"{type(error).__name__}: {error}"])
            return
        check_none(label, differences(rows, truth))

    def verify(self):
        told = json.loads(program(self.environment, "verify", "delta", self.url, "--json"))
        return [found["message"] for found in told["differences"]]

    def table(self):
        from _readers import options_of
        import deltalake

        return deltalake.DeltaTable(f"{self.url}/events", storage_options=options_of(self.environment))

    def history(self):
        operations = {commit["operation"] for commit in self.table().history()}
        return [] if operations == {"WRITE"} else [f"the operations are {operations}"]


def forget(place: Place, config: dict, person: str) -> None:
    path = SCRATCH / f"erasure-{place.file.stem}.json"
    ledger = str(SCRATCH / f"ledger-{place.file.stem}")
    service = {"base_url": config["base_url"], "service_id": config["service_id"], "spool_dir": str(SCRATCH)}
    path.write_text(json.dumps({**service, "erasure": {"import_token": "demo-import-token", "ledger_dir": ledger}}))
    environment = {**(place.environment or {}), "DFINERY_LEDGER_KEY": "k" * 32}
    arguments = ["forget", "--id", person, "--config", str(path), "--in", "delta", place.url, "--by-column", "df_unified_id"]
    plan = json.loads(program(environment, *arguments, "--json").strip().splitlines()[-1])
    program(environment, *arguments, "--execute", "--confirm", plan["hash"])
    connection = duckdb.connect(str(place.file))
    connection.execute("DELETE FROM events WHERE df_unified_id = ?", [person])
    connection.close()


def suite(place: Place, config: dict, travel: dict) -> None:
    today = datetime.now(timezone.utc).date()
    day = [(today - timedelta(days=back)).isoformat() for back in range(9, 2, -1)]
    place.sync(day[0], day[2])
    check_none(f"{place.label}, history", place.history())
    before, version = in_duckdb(place.file), place.table().version()
    quick = {"deltalake": read_deltalake}
    place.compare("first load", readers=quick)
    place.sync(day[1], day[5])
    place.compare("drift and re-reads")
    for name, read in travel.items():
        place.compare_one(f"{place.label}, version {version}, {name}", read, before, version)
    truth = in_duckdb(place.file)
    person = next(row["df_unified_id"] for row in truth.values() if row["df_unified_id"])
    forget(place, config, person)
    place.compare("purge")
    if place.environment is None:
        found = [str(path) for path in Path(place.url).rglob("*") if path.is_file() and person.encode() in path.read_bytes()]
    else:
        found = objects_with(person, place.url.split("/")[2], place.environment)["found"]
    check_none(f"{place.label}, purge leaves no byte", found)
    page = SCRATCH / f"report-{place.file.stem}.html"
    program(place.environment, "report", "delta", place.url, "-o", str(page))
    text = page.read_text()
    check_none(f"{place.label}, report", [] if person not in text else ["the person is in it"])


def refusals(config: Path, environment: dict[str, str]) -> None:
    arguments = ["--config", str(config), "--from", "2020-01-01", "--to", "2020-01-01"]
    program(environment | {"AWS_SECRET_ACCESS_KEY": "wrong"}, "sync", "delta", "s3://plain/x", *arguments, code=2)
    program(environment, "sync", "delta", "s3://no-such-bucket/x", *arguments, code=2)
    program(environment | {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}, "sync", "delta", "s3://plain/x", *arguments, code=3)
    check_none("wrong credentials, no bucket and nobody there are told apart", [])


spark = spark_reader()
if spark is None:
    print("interop: Spark is left out: no Java, no Maven, or delta-spark cannot be had")
disk = {"deltalake": read_deltalake, "polars": read_polars, "duckdb": read_duckdb} | ({"spark": spark} if spark else {})
remote = {"deltalake": read_deltalake, "polars": read_polars}
with simulator(events_per_day=200) as config, store(SCRATCH / "store") as environment:
    for zone in (None, "America/New_York"):
        path = write_config(f"config-{zone is None}.json", {**config, **({"timezone": zone} if zone else {})})
        label = zone or "no zone"
        suite(Place(f"disk {label}", str(SCRATCH / f"lake-{zone is None}"), path, None, disk), config, disk)
    plain = write_config("config-s3.json", config)
    suite(Place("bucket", "s3://plain/lake", plain, environment, remote), config, remote)
    suite(Place("versioned bucket", "s3://versioned/deep/lake", plain, environment, {"deltalake": read_deltalake}), config, {})
    refusals(plain, environment)
finish()
