import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';

/** A folder of Parquet datasets, one file a date, described by a manifest that is replaced as one. */
export const parquet: Target = {
  name: 'parquet',
  place: { name: 'dir', describe: 'The folder; made where there is none' },
  summaries: {
    sync: 'The export into a folder of Parquet files, one a date',
    verify: 'The files of a Parquet dataset against its manifest and receipts; exit 1 where they differ',
    compact: 'Encodes every partition of a Parquet dataset anew and drops what is empty',
    report: 'One page about a Parquet dataset: days, events, columns, runs',
  },
  open: async (dir, options) => loaderOf(await (await import('./sink.ts')).openParquetSink({ ...options, dir })),
  readPriorLoads: async (dir) => (await import('./prior-loads.ts')).readParquetPriorLoads(dir),
  verify: async (dir, options) => (await import('./verify.ts')).verifyParquet({ ...options, dir }),
  compact: async (dir, options) => (await import('./rewrite.ts')).compactParquet({ ...options, dir }),
  report: async (dir, options) => (await import('./report.ts')).reportParquet({ ...options, dir }),
  people: async (dir, query, options) => (await import('./people.ts')).peopleInParquet({ ...options, dir }, query),
  checkPurge: async (dir, query, options) => (await import('./purge.ts')).checkPurgeParquet({ ...options, dir }, query),
  purge: async (dir, query, options) =>
    (await import('./purge.ts')).purgeParquet({ ...options, dir }, query, options.onFound),
  async *rowsOfPeople(dir, query, options) {
    yield* (await import('./people.ts')).rowsInParquet({ ...options, dir }, query);
  },
};
