import { readFileSync } from 'node:fs';
import { UserError } from '../../../src/base/errors.ts';
import type { DayDownload } from '../../../src/extract/day.ts';
import { Place, type TargetName } from '../targets/place.ts';

/**
 * Commits the batches of a JSON file to a place, in their order, a dot on stdout before each; `over and over` until it is
 * killed. A failure that passes is tried again.
 */
async function main([name, path, list, how]: readonly string[]): Promise<void> {
  const batches = JSON.parse(readFileSync(list, 'utf8')) as DayDownload[][];
  const place = new Place(name as TargetName, path);
  const sink = await place.target.open(path, place.options({ lockWaitMs: 60_000 }));
  do {
    for (const batch of batches) {
      process.stdout.write('.');
      await committed(() => sink.commit(batch, place.facts('2026-01-01'), place.signal));
    }
  } while (how === 'over and over');
  await sink.close();
  place.close();
}

async function committed(commit: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await commit();
      return;
    } catch (error) {
      if (!(error instanceof UserError) || error.kind !== 'transient') throw error;
    }
  }
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
