import { NO_PRIOR_LOADS, type PriorLoads } from '../../extract/window.ts';
import { coveredDays } from '../../table/receipts.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { placesIn } from './dataset/layout.ts';
import { type Manifest, readManifest } from './dataset/manifest.ts';
import { rowsOf } from './dataset/receipts.ts';

/** What a manifest has stored about earlier runs. */
export function priorLoadsOf(manifest: Manifest | undefined): PriorLoads {
  if (manifest === undefined) return NO_PRIOR_LOADS;
  const { receipts } = manifest;
  return {
    state: manifest.state ?? undefined,
    covered: coveredDays(receipts),
    eventNames: manifest.event_names,
    rowsOf: (from, to) => rowsOf(receipts, from, to),
  };
}

/** Reads the same from a folder, without writing to it; `NO_PRIOR_LOADS` if nothing was loaded yet. Throws Failure. */
export async function readParquetPriorLoads(dir: string): Promise<PriorLoads> {
  try {
    return priorLoadsOf(await readManifest(placesIn(dir).manifest));
  } catch (error) {
    throw failureOf(error, dir);
  }
}
