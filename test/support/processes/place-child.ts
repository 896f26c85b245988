import { readFileSync } from 'node:fs';
import { UserError } from '../../../src/base/errors.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { Days } from '../targets/days.ts';

/**
 * Commits the batches of a JSON file to a place, in their order. A failure that passes is tried again. At the end the
 * greatest memory of the process on stdout (KiB).
 */
async function main([name, path, list]: readonly string[]): Promise<void> {
  const batches = JSON.parse(readFileSync(list, 'utf8')) as CheckedDay[][];
  const days = new Days();
  const target = STATEFUL_TARGETS.find((candidate) => candidate.name === name);
  if (target === undefined) throw new Error(`no target ${name}`);
  const sink = await target.open(days.options({ address: path, lockWaitMs: 60_000, memoryLimit: undefined }));
  for (const batch of batches) await committed(() => sink.commit(batch, days.commitInfo('2026-01-01')));
  await sink.close();
  process.stdout.write(`${process.resourceUsage().maxRSS}\n`);
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
