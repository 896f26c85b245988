import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { DayDownload, RunFacts } from '../../../src/extract/receipt.ts';
import type { OpenOptions } from '../../../src/targets/contract.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';

/** What a writer does with a place: it commits batches, then purges people. */
export interface Work {
  readonly target: string;
  readonly place: string;
  readonly spoolDir: string;
  readonly facts: RunFacts;
  readonly batches: readonly (readonly DayDownload[])[];
  readonly purge?: readonly string[];
}

const work: Work = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const target = STATEFUL_TARGETS.find(({ name }) => name === work.target);
if (target === undefined) throw new Error(`no target ${work.target}`);
const { signal } = new AbortController();
const options: OpenOptions = {
  ...{ timezone: undefined, columnTypes: new Map(), schemaMode: 'evolve', memoryLimit: '300MB', lockWaitMs: 10_000 },
  ...{
    clock: systemClock,
    logger: silentLogger,
    env: () => undefined,
    spoolDir: work.spoolDir,
    retentionMs: 86_400_000,
  },
  ...{ stdout: new PassThrough(), signal },
};
const sink = await target.open(work.place, options);
for (const batch of work.batches) await sink.commit(batch, work.facts, signal);
await sink.close();
if (work.purge !== undefined) {
  const people = await target.people();
  await people.purge(work.place, { ids: work.purge, column: 'member' }, { ...options, onFound: async () => undefined });
}
