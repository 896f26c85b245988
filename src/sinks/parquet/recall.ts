import { coveredDays, type Memory, NO_MEMORY } from '../memory.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { placesIn } from './dataset/layout.ts';
import { type Manifest, readManifest } from './dataset/manifest.ts';
import { rowsOf } from './dataset/receipts.ts';

/** What a manifest has stored about earlier runs. */
export function memoryOf(manifest: Manifest | undefined): Memory {
  if (manifest === undefined) return NO_MEMORY;
  const { receipts } = manifest;
  return {
    state: manifest.state ?? undefined,
    covered: coveredDays(receipts),
    eventNames: manifest.event_names,
    rowsOf: (from, to) => rowsOf(receipts, from, to),
  };
}

/** Reads the same from a folder, without writing to it; `NO_MEMORY` if nothing was loaded yet. Throws Failure. */
export async function recallParquet(dir: string): Promise<Memory> {
  try {
    return memoryOf(await readManifest(placesIn(dir).manifest));
  } catch (error) {
    throw failureOf(error, dir);
  }
}
