import { readFileSync } from 'node:fs';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { Window } from '../../../src/extract/window.ts';
import { openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';

/** Commits the windows of a list, from the first that the file's receipts lack on; one byte to stdout before each. */
async function main(file: string, list: string): Promise<void> {
  const windows = JSON.parse(readFileSync(list, 'utf8')) as Window[];
  const sink = await openDuckDbSink({
    file,
    timezone: undefined,
    columnTypes: new Map(),
    schemaMode: 'evolve',
    memoryLimit: '500MB',
    lockWaitMs: 10_000,
    clock: systemClock,
    logger: silentLogger,
  });
  const state = sink.state?.exportState;
  const done = windows.findIndex((window) => window.state.from_date === state?.from_date) + 1;
  for (const window of windows.slice(done)) {
    process.stdout.write('.');
    await sink.commit([window], new AbortController().signal);
  }
  await sink.close();
}

const [file, list] = process.argv.slice(2);
main(file, list).catch((error) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
