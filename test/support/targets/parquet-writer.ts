import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { Window } from '../../../src/extract/window.ts';
import { openParquetSink } from './files.ts';

/** Commits the windows of a JSON file to a folder, in its order, over and over, until it is killed. */
const [dir, path] = process.argv.slice(2);
const windows: Window[] = JSON.parse(readFileSync(path, 'utf8'));
const { signal } = new AbortController();
const options = { timezone: undefined, columnTypes: new Map(), schemaMode: 'evolve', memoryLimit: '300MB' } as const;
const sink = await openParquetSink({
  ...options,
  place: dir,
  env: () => undefined,
  spoolDir: tmpdir(),
  tables: ['events', 'event_items', 'event_logs'],
  lockWaitMs: 10_000,
  clock: systemClock,
  logger: silentLogger,
});
process.stdout.write('open\n');
for (;;) for (const window of windows) await sink.commit([window], signal);
