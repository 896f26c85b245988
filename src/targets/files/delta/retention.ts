import { DAY_MS } from '../../../base/clock.ts';
import type { OpenPlace, Purpose } from '../format.ts';
import type { Snapshot } from './protocol/snapshot.ts';

/** The key in a table's configuration. */
const RETENTION_KEY = 'delta.deletedFileRetentionDuration';
const DEFAULT_RETENTION_MS = DAY_MS;

/** The configuration of a table with this retention (ms). */
export const retentionConfiguration = (retentionMs: number) => ({
  [RETENTION_KEY]: `interval ${Math.ceil(retentionMs / 1_000)} seconds`,
});

/** The time that files which left a table stay for its readers (ms): of this load, else as its last load set it. */
export function retentionMsOf(purpose: Purpose, { metaData }: Snapshot): number {
  if (purpose.kind === 'load') return purpose.retentionMs;
  const seconds = /^interval (\d{1,9}) seconds$/.exec(metaData?.configuration[RETENTION_KEY] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
}

/**
 * A checkpoint leaves out the tombstones before this time (ms since 1970). Those of the default retention stay: a later
 * run may have a longer one than this.
 */
export const tombstonesKeptSince = ({ options, purpose }: OpenPlace, snapshot: Snapshot): number =>
  options.clock.now() - Math.max(retentionMsOf(purpose, snapshot), DEFAULT_RETENTION_MS);
