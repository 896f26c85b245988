import type { StatefulTarget } from '../contract.ts';
import { filesTarget } from '../files/target.ts';

export const parquet: StatefulTarget = filesTarget(
  {
    name: 'parquet',
    place: { name: 'dir', describe: 'The folder; made where there is none' },
    label: 'a Parquet folder',
    summary: 'The export into a folder of Parquet files, one a day',
  },
  async () => (await import('./folder.ts')).PARQUET,
);
