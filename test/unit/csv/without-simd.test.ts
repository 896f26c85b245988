import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

let records: RecordFixture;
beforeEach(() => {
  records = new RecordFixture();
});
afterEach(() => {
  vi.restoreAllMocks();
  records.close();
});

const HEADER =
  'df_event_detail_log_id,df_event_log_id,event_name,df_server_datetime,df_items_df_price,n,price,day,yes,tags,note';
const LINES = [
  'a:0,a,purchase,2026-01-02 03:04:05,1.5,1,1.25,2026-01-02,true,"[""x"",""y""]",plain',
  'a:1,a,purchase,2026-01-02 03:04:05.123456,7,-12,1e20,2026.1.2,FALSE,[],"say ""no"", or not"',
  'b:0,b,login,2026.1.2 3:04,,007,5.,2026-02-30,null,"[""한""]",한글',
  'b:0,b,login,,,null,null,,,,null',
  ',,,2026-01-02T03:04:05Z,x,9223372036854775808,,,TRUE,x,"two\nlines"',
];
/** Rows of many blocks, one of which is larger than the memory that is taken at first. */
const manyRows = () => [
  ...Array.from({ length: 4_000 }, (_, i) => LINES[i % LINES.length].replace(/^a:0/, `e${i}:0`)),
  `long:0,long,login,2026-01-02 03:04:05,,1,1,2026-01-02,true,[],"${'long "" text '.repeat(200_000)}"`,
  LINES[0].replace('a:0', 'last:0'),
];
const csvOf = (lines: readonly string[]) => [HEADER, ...lines, ''].join('\n');

const STREAMS = [
  streamOf('events', {
    _key: 'string',
    df_server_datetime: 'instant',
    df_items_df_price: 'double',
    n: 'long',
    price: 'double',
    day: 'date',
    yes: 'boolean',
    tags: 'string[]',
    note: 'string',
  }),
  streamOf('event_logs', { df_event_log_id: 'string', df_server_datetime: 'datetime', n: 'string', note: 'string' }),
  streamOf('event_items', { _key: 'string', df_price: 'double', item_position: 'long' }),
];

/** The lines of records, and the spool that they are made from. */
async function readOf(csv: string, timezone: string | undefined) {
  const { text } = await records.write(csv, STREAMS, { timezone });
  return { text, spool: readFileSync(records.spool(csv, timezone).path, 'utf8') };
}

describe('a machine without SIMD', () => {
  it.each([
    ['few rows', () => LINES, undefined],
    ['few rows of instants', () => LINES, 'America/New_York'],
    ['a row larger than the first memory', manyRows, 'Asia/Seoul'],
    ['no row', () => [], undefined],
  ])('reads and writes %s as a machine with SIMD', async (_, lines, timezone) => {
    const csv = csvOf(lines());
    const fast = await readOf(csv, timezone);
    const opened = vi.spyOn(CsvMemory, 'open').mockImplementation(CsvMemory.withoutSimd);
    const slow = await readOf(csv, timezone);
    expect(opened).toHaveBeenCalled();
    expect(slow.text).toBe(fast.text);
    expect(slow.spool).toBe(fast.spool);
    expect(fast.text.split('\n').length - 1).toBeGreaterThanOrEqual(lines().length);
  });
});
