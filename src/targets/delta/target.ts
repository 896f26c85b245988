import type { StatefulTarget } from '../contract.ts';
import { filesTarget } from '../files/target.ts';

export const delta: StatefulTarget = filesTarget(
  {
    name: 'delta',
    place: { name: 'url', describe: 'A folder, or s3://BUCKET/PREFIX; made where there is none' },
    label: 'a Delta table',
    summary: 'The export into a Delta table, in a folder or a bucket',
  },
  async () => (await import('./log.ts')).DELTA,
);
