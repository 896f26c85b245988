import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { NewFile } from '../../../src/sinks/files/log.ts';
import { loggedColumns } from '../../../src/sinks/files/log-entries.ts';
import { writeFile } from '../../../src/sinks/files/parquet-file.ts';
import { openEngine } from '../../../src/sinks/sql/engine/engine.ts';

it('tells the range of instants in UTC, whatever zone the machine is in, when a row group has none', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-statistics-'));
  const engine = await openEngine({ file: join(dir, 'work'), lockWaitMs: 0, clock: systemClock });
  try {
    await engine.run(`SET TimeZone = 'Asia/Seoul'`);
    const query = `SELECT CASE WHEN i = 69999 THEN TIMESTAMPTZ '2026-01-01 09:30:00.25+00' END AS at FROM range(70000) t(i)`;
    const writer = { rows: (sql: string) => engine.rows(sql), isLowOnMemory: false, layout: {} };
    const file = await writeFile(writer, { query, rows: 70_000 }, join(dir, 'file.part'));
    const logged = await loggedColumns(engine, file as NewFile, new Set(['at']));
    const text = '2026-01-01 09:30:00.25+00';
    expect(logged.get('at')).toMatchObject({ least: text, greatest: text, nulls: 69_999, absent: 69_999 });
  } finally {
    await engine.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
