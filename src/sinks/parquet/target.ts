import { filesTarget } from '../files/target.ts';
import type { StatefulTarget } from '../target.ts';

/** A folder of Parquet files, one a date, which readers find by a glob pattern. */
export const parquet: StatefulTarget = filesTarget(
  {
    name: 'parquet',
    place: { name: 'dir', describe: 'The folder; made where there is none' },
    summaries: {
      sync: 'The export into a folder of Parquet files, one a date',
      verify: 'The files of a Parquet dataset against its manifest and receipts; exit 1 where they differ',
      compact: 'Sorts the rows of large Parquet files, so that filters skip some, and drops files without rows',
      report: 'One page about a Parquet dataset: days, events, columns, runs',
    },
  },
  async () => (await import('./log.ts')).PARQUET,
);
