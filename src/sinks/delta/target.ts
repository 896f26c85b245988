import { filesTarget } from '../files/target.ts';
import type { StatefulTarget } from '../target.ts';

/** Delta Lake tables in a folder or a bucket: a batch of windows is one commit. */
export const delta: StatefulTarget = filesTarget(
  {
    name: 'delta',
    place: { name: 'url', describe: 'A folder, or s3://BUCKET/PREFIX; made where there is none' },
    summaries: {
      sync: 'The export into Delta Lake tables, in a folder or a bucket',
      verify: 'The files of Delta tables against their log and receipts; exit 1 where they differ',
      compact: 'Makes the files of each date one, sorted; drops those without rows',
      report: 'One page about Delta tables: days, events, columns, runs',
    },
  },
  async () => (await import('./log.ts')).DELTA,
);
