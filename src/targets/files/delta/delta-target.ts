import type { StatefulTarget } from '../../contract.ts';
import { filesTarget } from '../files-target.ts';

export const delta: StatefulTarget = filesTarget(
  { name: 'delta', placeName: 'url' },
  async () => (await import('./log.ts')).DELTA,
);
