"""dlt, Arrow tables from pyarrow's CSV reader, merged by id into DuckDB."""

import dlt
from pyarrow import csv
from service import DAYS, KEY, TARGET, export


@dlt.resource(name="events", write_disposition="merge", primary_key=KEY)
def events():
    for day in DAYS:
        yield csv.read_csv(export(day).raw, parse_options=csv.ParseOptions(newlines_in_values=True))


pipeline = dlt.pipeline("arrow", pipelines_dir=f"{TARGET}.dlt", destination=dlt.destinations.duckdb(TARGET))
pipeline.run(events()).raise_on_failed_jobs()
