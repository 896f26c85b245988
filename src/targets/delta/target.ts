import { filesTarget } from '../files/files-target.ts';
import type { StatefulTarget } from '../target.ts';

export const delta: StatefulTarget = filesTarget(
  {
    name: 'delta',
    place: { name: 'url', describe: 'A folder, or s3://BUCKET/PREFIX; made where there is none' },
    label: 'Delta tables',
    markers: ['events/_delta_log'],
    summaries: {
      sync: 'The export into Delta Lake tables, in a folder or a bucket',
      compact: 'Makes the files of each date one, sorted; drops those without rows',
    },
  },
  async () => (await import('./log.ts')).DELTA,
);
