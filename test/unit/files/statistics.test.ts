import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { openEngine } from '../../../src/engine/session/open.ts';
import type { NewFile } from '../../../src/targets/files/data-file.ts';
import { loggedColumns } from '../../../src/targets/files/log-entries.ts';
import { writeFile } from '../../../src/targets/files/parquet-file.ts';

it('tells the range of instants in UTC, whatever zone the machine is in, when a row group has none', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-statistics-'));
  const engine = await openEngine({ file: join(dir, 'work'), lockWaitMs: 0, clock: systemClock });
  try {
    await engine.run(`SET TimeZone = 'Asia/Seoul'`);
    const query = `SELECT CASE WHEN i = 69999 THEN TIMESTAMPTZ '2026-01-01 09:30:00.25+00' END AS at FROM range(70000) t(i)`;
    const writer = { rows: (sql: string) => engine.rows(sql), isLowOnMemory: false, layout: {} };
    const file = await writeFile(writer, { table: 'events', query, rows: 70_000 }, join(dir, 'file.part'));
    const logged = await loggedColumns(engine, [file as NewFile], new Set(['at']));
    const text = '2026-01-01 09:30:00.25+00';
    expect(logged.get(file as NewFile)?.get('at')).toMatchObject({
      least: text,
      greatest: text,
      nulls: 69_999,
      absent: 69_999,
    });
  } finally {
    await engine.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

it('counts the rows without a list for each file, also where another has the column as a scalar or not at all', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-statistics-'));
  const engine = await openEngine({ file: join(dir, 'work'), lockWaitMs: 0, clock: systemClock });
  try {
    const writer = { rows: (sql: string) => engine.rows(sql), isLowOnMemory: false, layout: {} };
    const write = (name: string, query: string) =>
      writeFile(writer, { table: 'events', query, rows: 10 }, join(dir, name));
    const lists = (n: number) => `SELECT i, CASE WHEN i < ${n} THEN NULL WHEN i = 8 THEN [] ELSE [i, NULL] END AS a`;
    const from = 'FROM range(10) t(i)';
    const files = [
      await write('one [1].part', `${lists(3)} ${from}`),
      await write('two.part', `${lists(7)} ${from}`),
      await write('scalar.part', `SELECT i, CASE WHEN i < 4 THEN i END AS a ${from}`),
      await write('without.part', `SELECT i ${from}`),
      await write('empty.part', `${lists(3)} ${from} WHERE i > 10`),
    ] as NewFile[];
    const logged = await loggedColumns(engine, files, new Set());
    expect(files.map((file) => logged.get(file)?.get('a')?.absent)).toEqual([3, 7, 6, undefined, 0]);
    // What is at the path of the first file is another one, which gives no answer.
    const replaced = { ...files[0], local: files[4].local };
    await expect(loggedColumns(engine, [replaced], new Set())).rejects.toThrow('counted no lists of a');
  } finally {
    await engine.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
