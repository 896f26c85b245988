import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';
import { peopleInParquet } from './people.ts';
import { reportParquet } from './report.ts';
import { compactParquet, purgeParquet } from './rewrite.ts';
import { openParquetSink } from './sink.ts';
import { verifyParquet } from './verify.ts';

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
  open: async (dir, options) => loaderOf(await openParquetSink({ ...options, dir })),
  verify: (dir, options) => verifyParquet({ ...options, dir }),
  compact: (dir, options) => compactParquet({ ...options, dir }),
  report: (dir, options) => reportParquet({ ...options, dir }),
  people: (dir, column, texts, options) => peopleInParquet({ ...options, dir }, column, texts),
  purge: (dir, leaveOut, options) => purgeParquet({ ...options, dir, leaveOut }),
};
