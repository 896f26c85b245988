import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validators } from '../../../connectors/validator.mjs';
import { csvOf, on } from '../../support/targets/csv.ts';
import { verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const DAYS = ['2026-01-01', '2026-01-02'];

let fixture: ParquetFixture;
let writer: string;
let list: string;

beforeAll(async () => {
  fixture = new ParquetFixture();
  symlinkSync(join(ROOT, 'node_modules'), join(fixture.dir, 'node_modules'));
  writer = join(fixture.dir, 'writer.mjs');
  list = join(fixture.dir, 'windows.json');
  const entryPoints = [join(ROOT, 'test/support/targets/parquet-writer.ts')];
  await build({
    entryPoints,
    outfile: writer,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    plugins: [validators],
  });
  writeFileSync(list, JSON.stringify(DAYS.map((day) => fixture.window(day, csvOf([rowOf(day)])))));
});
afterAll(() => fixture.close());

const rowOf = (day: string) => ({ id: `e-${day}`, ...on(day) });

/** Writes the windows to a folder until it has renamed so many files; the writer begins again after the last. */
async function writeUntil(renames: number): Promise<void> {
  const child = spawn(
    process.execPath,
    ['-r', join(ROOT, 'test/support/processes/kill-after.cjs'), writer, fixture.root, list],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, KILL_AFTER: `rename:${renames}` },
    },
  );
  expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
}

/** The first day of the cursor, and the days of the rows, as the next run and a reader find them. */
async function found(): Promise<{ cursor: string | undefined; days: unknown[] }> {
  const sink = await fixture.openFolder({ tables: ['events', 'event_items', 'event_logs'] });
  const state = sink.state?.exportState;
  await sink.close();
  if (!state) {
    expect(fixture.files().filter((file) => file.startsWith('events/'))).toEqual([]);
    return { cursor: undefined, days: [] };
  }
  expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  const rows = await fixture.read('SELECT event_date AS day FROM events ORDER BY day');
  return { cursor: state?.from_date, days: rows.map((row) => row.day) };
}

describe('kill -9 right after a rename', () => {
  it('finds rows and cursor together in the folder, after any rename', async () => {
    const cursors = new Set<string | undefined>();
    for (let renames = 1; !cursors.has('2026-01-03'); renames++) {
      expect(renames).toBeLessThan(30);
      rmSync(fixture.root, { recursive: true, force: true });
      await writeUntil(renames);
      const { cursor, days } = await found();
      expect({ renames, days }).toEqual({ renames, days: DAYS.filter((day) => cursor !== undefined && day < cursor) });
      cursors.add(cursor);
    }
    expect([...cursors]).toEqual([undefined, '2026-01-02', '2026-01-03']);
  });
});
