import { afterEach, describe, expect, it, vi } from 'vitest';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { type RowHandler, RowSource } from '../../../src/cells/csv/row-source.ts';
import { MAX_COLUMNS, RowTokenizer } from '../../../src/cells/csv/tokenizer.ts';
import { contentOf } from '../../../src/service/export/content.ts';
import { malformedOf } from '../../support/failure.ts';

const MIB = 1024 * 1024;

/** Counts rows. */
class Rows implements RowHandler {
  rows = 0;
  row() {
    this.rows++;
    return true;
  }
}

afterEach(() => vi.restoreAllMocks());

/** Bytes that the tokenizer was given, all calls together, while a text comes in chunks of so many bytes. */
function bytesRead(text: string, chunkBytes: number): number {
  const next = vi.spyOn(RowTokenizer.prototype, 'next');
  const source = new RowSource(new Rows());
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) source.push(bytes.subarray(at, at + chunkBytes));
  source.finish();
  return next.mock.calls.reduce((sum, [, at, end]) => sum + end - at, 0);
}

describe('a long header', () => {
  const names = (name: string) => `df_unified_id,${Array.from({ length: 1_000 }, () => name).join(',')}`;
  it.each([
    ['plain', names('x'.repeat(4_000))],
    ['with line ends inside its names', names(`"${'ab\n'.repeat(1_300)}"`)],
    ['with no end', names('x'.repeat(4_000)).replace(/\n.*$/, '')],
  ])('%s is read in linear time', (_, header) => {
    expect(header.length).toBeGreaterThan(3.5 * MIB);
    expect(bytesRead(`${header}\n`, 1_024)).toBeLessThan(4 * header.length);
  });

  it('that begins like JSON is scanned a few times, not once a chunk', () => {
    const comparisons = vi.spyOn(Uint8Array.prototype, 'every');
    const source = new RowSource(new Rows());
    const chunk = Buffer.from('{a,'.repeat(100));
    for (let i = 0; i < 2_000; i++) source.push(chunk);
    // Each look at a comma compares the name of a column: 200,000 commas, looked at twice on average.
    expect(comparisons.mock.calls.length).toBeLessThan(1_000_000);
  });

  it('is known as soon as its line ends, in any chunks', () => {
    const rows = new Rows();
    const source = new RowSource(rows);
    for (const byte of Buffer.from('"a\n""b",df_unified_id')) source.push(Uint8Array.of(byte));
    expect(rows.rows).toBe(0);
    source.push(Uint8Array.of(10));
    expect(rows.rows).toBe(1);
  });
});

describe('a header with too many columns', () => {
  const parse = (text: string) => {
    const source = new RowSource(new Rows());
    source.push(Buffer.from(text));
    source.finish();
  };
  const header = (count: number, name = 'a') => Array.from({ length: count }, () => name).join(',');

  it('is refused with the limit in the message', () => {
    for (const text of [header(MAX_COLUMNS + 1), header(MAX_COLUMNS + 1, ''), header(500_000), ','.repeat(MIB)]) {
      const failure = malformedOf(() => parse(`${text}\n`));
      expect(failure.reason).toBe('too_many_columns');
      expect(failure.message).toContain(
        `more columns than an export may have: expected at most ${MAX_COLUMNS} columns`,
      );
    }
  });

  it('begins one above the limit', () => {
    expect(() => parse(`${header(MAX_COLUMNS)}\n${header(MAX_COLUMNS, '1')}\n`)).not.toThrow();
  });
});

const REST =
  'df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_event_name,df_server_datetime,df_unified_id';
const bytes = (text: string) => Buffer.from(text);

describe('a header whose first name begins with a bracket', () => {
  it.each(['[promo]', '{x}', '<tag>'])('is read as CSV: %s', (name) => {
    const body = bytes(`${name},${REST}\nv,1,2026-01-01 00:00:00.000,a,a,e,2026-01-01 00:00:00.000,u\n`);
    expect(contentOf(body)).toBe('other');
    const scanner = new Scanner({ requireSystem: true });
    for (const byte of body) scanner.push(Uint8Array.of(byte));
    expect(scanner.finish().header[0]).toBe(name);
  });

  it('is waited for when it is incomplete', () => {
    expect(contentOf(bytes(`[promo],df_api`))).toBeUndefined();
  });

  it.each([
    ['{"result":"fail","message":"client_connection_closed"}', 'json'],
    ['[]\n', 'json'],
    ['<html>\n<body>,df_unified_id</body>', 'html'],
  ])('is not confused with %s', (text, content) => {
    expect(contentOf(bytes(text), { isAll: true })).toBe(content);
    const scanner = new Scanner({ requireSystem: true });
    expect(() => {
      scanner.push(bytes(text));
      scanner.finish();
    }).toThrow(expect.objectContaining({ reason: 'not_csv' }));
  });
});
