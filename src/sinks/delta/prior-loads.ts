import type { PriorLoads } from '../../extract/window.ts';
import { coveredDays } from '../../table/receipts.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { rowsOf } from './commit/receipts.ts';
import { Lake, type LakeOptions } from './lake.ts';

/** What the tables have stored. Without event names: these are values of the data, which the log does not contain. */
export function priorLoadsOf(lake: Lake): PriorLoads {
  const { domains } = lake.events;
  const receipts = domains.receipts();
  return {
    state: domains.state(),
    covered: coveredDays(receipts),
    eventNames: [],
    rowsOf: (from, to) => rowsOf(receipts, from, to),
  };
}

/** Opens a place read-only and reads the same; `NO_PRIOR_LOADS` if nothing was loaded yet. Throws Failure. */
export async function readDeltaPriorLoads(options: LakeOptions): Promise<PriorLoads> {
  try {
    const lake = await Lake.open(options, 'read');
    try {
      return priorLoadsOf(lake);
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}
