import type { StatefulTarget } from '../../contract.ts';
import { filesTarget } from '../files-target.ts';

export const parquet: StatefulTarget = filesTarget(
  { name: 'parquet', placeName: 'dir' },
  async () => (await import('./folder.ts')).PARQUET,
);
