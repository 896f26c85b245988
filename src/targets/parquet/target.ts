import { filesTarget } from '../files/files-target.ts';
import type { StatefulTarget } from '../target.ts';

export const parquet: StatefulTarget = filesTarget(
  {
    name: 'parquet',
    place: { name: 'dir', describe: 'The folder; made where there is none' },
    label: 'a Parquet dataset',
    markers: ['_dfinery/manifest.json'],
    summaries: {
      sync: 'The export into a folder of Parquet files, one a date',
      compact: 'Sorts the rows of large Parquet files, so that filters skip some, and drops files without rows',
    },
  },
  async () => (await import('./log.ts')).PARQUET,
);
