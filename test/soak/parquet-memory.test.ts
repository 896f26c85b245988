import { closeSync, createReadStream, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/log.ts';
import { type CliChild, CliFixture, daysBack, summaryIn } from '../support/processes/cli-child.ts';
import { verifyParquet } from '../support/targets/files.ts';

/** What little data takes says nothing of memory: only a soak watches that. */
const IS_SOAK = process.env.SOAK_SEEDS !== undefined;
/** How much more there is than memory for it. */
const TIMES = IS_SOAK ? 10 : 0.2;
const LIMIT_MB = 100;
/** What the program takes besides: Node, DuckDB's code, the buffers of a download. */
const REST_MB = 600;
const CHUNK_ROWS = 10_000;

let fixture: CliFixture;
afterEach(() => fixture.close());

/** Writes an export of about so many bytes; gives its rows and its events, every third of which has two items. */
function writeExport(path: string, day: string, bytes: number): { readonly rows: number; readonly events: number } {
  const file = openSync(path, 'w');
  const counts = { rows: 0, events: 0 };
  writeSync(
    file,
    'df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_event_name,df_items_k,df_server_datetime,df_unified_id,memo\n',
  );
  while (statSync(path).size < bytes) {
    const lines: string[] = [];
    for (; lines.length < CHUNK_ROWS; counts.events++) {
      const n = counts.events;
      const id = `e${Math.imul(n, 0x9e3779b1) >>> 0}-${n}`;
      const time = `${day} ${String(n % 24).padStart(2, '0')}:00:00.${String(n % 1_000).padStart(3, '0')}`;
      const name = n % 3 === 0 ? 'df_purchase' : `event_${n % 5}`;
      const ids = n % 3 === 0 ? [`${id}:0`, `${id}:1`] : [id];
      const memo = `${n} ${'a text that makes rows as long as they are '.repeat(2)}`;
      for (const [k, detail] of ids.entries()) {
        lines.push(`1.0,${time},${detail},${id},${name},${n % 3 === 0 ? k : ''},${time},u${n % 1_009},${memo}`);
      }
    }
    counts.rows += lines.length;
    writeSync(file, `${lines.join('\n')}\n`);
  }
  closeSync(file);
  return counts;
}

/** The most memory that a process has had, in MB; undefined where the system does not tell. */
function peakOf(child: CliChild): number | undefined {
  try {
    const kib = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.process.pid}/status`, 'latin1'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1_024;
  } catch {
    return undefined;
  }
}

async function watched(child: CliChild) {
  const peaks: number[] = [];
  const watch = setInterval(() => {
    const peak = peakOf(child);
    if (peak !== undefined) peaks.push(peak);
  }, 50);
  const ended = await child.ended;
  clearInterval(watch);
  return { ended, peak: Math.max(0, ...peaks) };
}

describe('a Parquet folder with little memory', () => {
  it(`loads a day of ${TIMES} times memory_limit, loads it again, and derives the other tables`, async () => {
    const day = daysBack(3);
    let path = '';
    fixture = await CliFixture.start({}, { bodyOf: (from) => (from === day ? createReadStream(path) : undefined) });
    path = join(fixture.dir, `${day}.csv`);
    const { rows, events } = writeExport(path, day, TIMES * LIMIT_MB * 1_000_000);
    const dir = join(fixture.dir, 'lake');
    const config = { memory_limit: `${LIMIT_MB}MB`, to_date_inclusive: 'true', start_date: day, end_date: day };
    for (const tables of ['events', 'events', 'events,event_items,event_logs']) {
      const words = ['sync', 'parquet', dir, '--tables', tables, '--full-refresh', '--json'];
      const { ended, peak } = await watched(fixture.start([...words, '--config', fixture.config(config)]));
      expect(ended, ended.stderr).toMatchObject({ code: 0 });
      expect(summaryIn(ended)).toMatchObject({ rows, windows: 1 });
      if (IS_SOAK) expect(peak).toBeLessThan(LIMIT_MB + REST_MB);
    }
    const manifest = JSON.parse(readFileSync(join(dir, '_dfinery/manifest.json'), 'utf8'));
    const counts = manifest.files.map((file: { path: string; rows: number }) => [file.path.split('/')[0], file.rows]);
    expect(Object.fromEntries(counts)).toMatchObject({ events: rows, event_logs: events });
    const options = {
      place: dir,
      env: () => undefined,
      spoolDir: fixture.dir,
      lockWaitMs: 0,
      memoryLimit: '1GB',
      clock: systemClock,
      logger: silentLogger,
    };
    expect(await verifyParquet(options)).toEqual([]);
  }, 900_000);
});
