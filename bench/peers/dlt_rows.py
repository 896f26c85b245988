"""dlt, a dict a row, merged by id into DuckDB."""

import csv
import io

import dlt
from service import DAYS, KEY, TARGET, export


@dlt.resource(name="events", write_disposition="merge", primary_key=KEY)
def events():
    for day in DAYS:
        yield from csv.DictReader(io.TextIOWrapper(export(day).raw, encoding="utf-8", newline=""))


pipeline = dlt.pipeline("rows", pipelines_dir=f"{TARGET}.dlt", destination=dlt.destinations.duckdb(TARGET))
pipeline.run(events()).raise_on_failed_jobs()
