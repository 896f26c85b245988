"""PyAirbyte over the CDK source, into its DuckDB cache."""

import os

import airbyte as ab
from airbyte.caches import DuckDBCache
from service import TARGET

source = ab.get_source("source-bench", local_executable=os.environ["BENCH_SOURCE"], config={})
source.select_all_streams()
source.read(cache=DuckDBCache(db_path=TARGET), force_full_refresh=True)
