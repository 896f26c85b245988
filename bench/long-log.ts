import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addDays, type Day } from '../src/base/days.ts';
import { DELTA } from '../src/targets/delta/log.ts';
import { csvOf } from '../test/support/targets/csv.ts';
import { DeltaFixture } from '../test/support/targets/delta.ts';
import { median, printGoal } from './measure.ts';

const COMMITS = 10_000;
/** Maximum number of entries after the last checkpoint. */
const AFTER = 99;
const ROUNDS = 5;
const WANTED_SECONDS = 2;
const FIRST: Day = '1990-01-01';

/**
 * Measures the opening of a Delta table of very many commits, with a file and a receipt each, at the last entry before
 * its next checkpoint.
 */
export async function benchLongLog(): Promise<void> {
  const bench = new DeltaFixture();
  try {
    await bench.store([bench.window(FIRST, csvOf([{ id: 'a', df_server_datetime: `${FIRST} 10:00:00.000` }]))]);
    const isRepeated = ({ protocol, metaData, domainMetadata }: ReturnType<DeltaFixture['entry']>[number]) =>
      !protocol && !metaData && !String(domainMetadata?.domain).startsWith('dfinery.changes.');
    const entry = JSON.stringify(bench.entry('events', 0).filter(isRepeated));
    const write = (version: number) => writeEntry(bench, version, entry);
    for (let version = 1; version < COMMITS; version++) write(version);
    await bench.checkpoint(Date.now());
    for (let version = COMMITS; version < COMMITS + AFTER; version++) write(version);
    const seconds: number[] = [];
    for (let round = 0; round < ROUNDS; round++) seconds.push(await opened(bench));
    const ratio = median(seconds) / WANTED_SECONDS;
    const detail = `${median(seconds).toFixed(2)} s until files and receipts of ${COMMITS + AFTER} commits are known`;
    printGoal({ name: 'delta log', ratio, wanted: ['<=', 1], detail });
  } finally {
    bench.close();
  }
}

/** Writes the first window's entry again as that of a later day. */
function writeEntry(bench: DeltaFixture, version: number, entry: string): void {
  const text = entry
    .replaceAll(FIRST, addDays(FIRST, version))
    .replaceAll('dfinery.window.1', `dfinery.window.${version + 1}`)
    .replaceAll('\\"window\\":1', `\\"window\\":${version + 1}`);
  const lines = (JSON.parse(text) as unknown[]).map((line) => `${JSON.stringify(line)}\n`);
  const name = `${String(version).padStart(20, '0')}.json`;
  writeFileSync(join(bench.root, 'events', '_delta_log', name), lines.join(''));
}

async function opened(bench: DeltaFixture): Promise<number> {
  const began = performance.now();
  const { log, close } = await DELTA.open(bench.lakeOptions, 'read');
  try {
    const counts = [log.snapshot?.files.length, log.snapshot?.state.receipts.length];
    if (counts.some((count) => count !== COMMITS + AFTER)) throw new Error(`${counts} of ${COMMITS + AFTER}`);
    return (performance.now() - began) / 1_000;
  } finally {
    await close();
  }
}
