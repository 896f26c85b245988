import { DAY_MS } from '../../../base/clock.ts';
import type { Purpose } from '../format.ts';
import type { Snapshot } from './protocol/snapshot.ts';

const RETENTION_KEY = 'delta.deletedFileRetentionDuration';
const DEFAULT_RETENTION_MS = DAY_MS;

/** The time that files which left a table stay for its readers (ms): of this load, else as its last load set it. */
export function retentionMsOf(purpose: Purpose, { metaData }: Snapshot): number {
  if (purpose.kind === 'load') return purpose.retentionMs;
  const seconds = /^interval (\d{1,9}) seconds$/.exec(metaData?.configuration[RETENTION_KEY] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
}

/** The configuration of a table with this retention (ms). */
export const retentionConfiguration = (retentionMs: number) => ({
  [RETENTION_KEY]: `interval ${Math.ceil(retentionMs / 1_000)} seconds`,
});
