"""pyarrow's CSV reader to an Arrow stream, a day after the other."""

import pyarrow as pa
from pyarrow import csv
from service import DAYS, TARGET, export

with pa.OSFile(TARGET, "wb") as out:
    writer = None
    for day in DAYS:
        table = csv.read_csv(export(day).raw, parse_options=csv.ParseOptions(newlines_in_values=True))
        if writer is None:
            schema = table.schema
            writer = pa.ipc.new_stream(out, schema)
        writer.write_table(table.cast(schema))
    writer.close()
