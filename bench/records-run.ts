// One way of making RECORD lines out of an export, timed: node dist/bench/records-run.js ours|naive FILE OUT [WORKERS]
// Prints {"seconds":…,"records":…,"bytes":…}.
import { createReadStream, createWriteStream, openSync, writeSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import { isMainThread } from 'node:worker_threads';
import { parse } from 'csv-parse';
import { systemClock } from '../src/base/clock.ts';
import { Scanner, type ScanResult } from '../src/cells/columns/scanner.ts';
import { TYPES } from '../src/cells/types/index.ts';
import type { ColumnType } from '../src/cells/types/type.ts';
import type { Window } from '../src/extract/window.ts';
import { RecordWriter } from '../src/targets/records/record-writer.ts';

if (isMainThread) await main();
else await import('../src/targets/records/worker.ts');

async function main(): Promise<void> {
  const [what, file = '', out = '', workers] = process.argv.slice(2);
  const spool = `${out}.spool`;
  const scan = await normalise(file, spool);
  const began = performance.now();
  const done =
    what === 'ours' ? await ours(scan, spool, out, workers && Number(workers)) : await naive(scan, spool, out);
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1_000, ...done }));
}

async function normalise(file: string, spool: string): Promise<ScanResult> {
  const scanner = new Scanner({ requireSystem: true });
  const fd = openSync(spool, 'w');
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 18 })) {
    for (const part of scanner.push(chunk as Buffer)) writeSync(fd, part);
  }
  const result = scanner.finish();
  for (const part of result.tail) writeSync(fd, part);
  return result;
}

async function ours(scan: ScanResult, path: string, out: string, workers: number | undefined | '') {
  const { header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames } = scan;
  const typed = columns.map(({ source, type }) => [source, TYPES[type ?? 'string'].jsonSchema(false)]);
  const events = { name: 'events', keys: ['_key'], properties: Object.fromEntries(typed) } as const;
  const window: Window = {
    files: [{ path, header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames }],
    receipt: {
      v: 1,
      id: 'bench',
      from: '2026-01-01',
      to: '2026-01-01',
      covers_from: '2026-01-01',
      covers_to: '2026-01-01',
      bytes: scan.outLength,
      sha256: '',
      rows,
      exports: 1,
      header,
      columns,
      split: 'none',
      verified_at: '2026-01-02T00:00:00.000Z',
      suppressed: 0,
      invalid_utf8: 0,
    },
    state: { version: 1, from_date: '2026-01-02' },
  };
  const threads = { entry: new URL(import.meta.url), workers: workers || undefined };
  const writer = new RecordWriter({ timezone: undefined, clock: systemClock, threads });
  const fd = openSync(out, 'w');
  let bytes = 0;
  const write = async (lines: Uint8Array) => {
    bytes += writeSync(fd, lines);
  };
  const written = await writer.write(window, [events], write, new AbortController().signal);
  await writer.close();
  return { records: written.records.get('events'), bytes };
}

/** Does what a plain source does: rows as objects, cells converted by the same types, JSON.stringify. */
async function naive(scan: ScanResult, path: string, out: string) {
  const file = createWriteStream(out);
  const names = scan.header;
  const types = scan.columns.map((column) => column.type);
  let records = 0;
  for await (const row of createReadStream(path).pipe(parse({ from_line: 2 }))) {
    const data: Record<string, unknown> = {};
    (row as string[]).forEach((text, i) => {
      if (text !== '') data[names[i] ?? ''] = coerced(text, types[i]);
    });
    const line = `${JSON.stringify({ type: 'RECORD', record: { stream: 'events', data, emitted_at: Date.now() } })}\n`;
    if (!file.write(line)) await new Promise<void>((resolve) => file.once('drain', () => resolve()));
    records++;
  }
  file.end();
  await finished(file);
  return { records };
}

function coerced(text: string, type: ColumnType | undefined): unknown {
  if (type === 'string' || type === undefined) return text;
  if (text === 'null') return null;
  if (type === 'long' || type === 'double') return Number(text);
  if (type === 'boolean') return text === 'TRUE' || text === 'true';
  if (type.endsWith('[]')) return JSON.parse(text);
  if (type === 'date') return text;
  const dotted = /^(\d+)\.(\d+)\.(\d+) (\d+):(\d+)$/.exec(text);
  if (dotted === null) return text.replace(' ', 'T');
  const [, y, m = '', d = '', h = '', minute] = dotted;
  return `${y}-${m.padStart(2, '0')}-${d.padStart(2, '0')}T${h.padStart(2, '0')}:${minute}:00.000`;
}
