import { describe, expect, it } from 'vitest';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { UnusableCsv } from '../../../src/cells/csv/malformed.ts';
import { REQUIRED_COLUMNS } from '../../../src/cells/header.ts';
import { malformedOf } from '../../support/failure.ts';
import { scanIn } from '../../support/scan.ts';

const SYSTEM = REQUIRED_COLUMNS.toSorted();
const HEADER = [...SYSTEM, 'memo'];
const rowOf = (n: number, memo = 'x') => [
  ...['2.0', '2026-01-02 03:04:05', `e${n}:1`, `e${n}`, 'login', '2026-01-02 03:04:05', `u${n}`, memo],
];
const rows = (count: number, memo?: string) => Array.from({ length: count }, (_, n) => rowOf(n, memo));
const textOf = (lines: readonly (readonly string[])[], separator = ',', end = '\n') =>
  lines.map((line) => line.join(separator) + end).join('');

const scan = (body: string | Uint8Array) =>
  scanIn(new ExportScanner({ needsEventColumns: true }), Buffer.from(body)).result;
/** `한글` in EUC-KR. */
const EUC_KR = '\xc7\xd1\xb1\xdb';

describe('two exports in one body', () => {
  const other = (...names: string[]) => textOf([names, ...rows(3)]);

  it.each([
    ['with the same columns', other(...HEADER)],
    ['with another custom column', other(...SYSTEM, 'grade')],
    ['with another column before the others', other('coupon', ...SYSTEM)],
    ['with a byte order mark', `\ufeff${other(...HEADER)}`],
    ['with names in capitals', other(...HEADER.map((name) => name.toUpperCase()))],
    ['with quoted names', other(...HEADER.map((name) => `"${name}"`))],
  ])('are broken: %s', (_, second) => {
    const failure = malformedOf(() => scan(textOf([HEADER, ...rows(3)]) + second));
    expect(failure.clause).toMatch(/^row 5 .* has the header once more, wanted a data row/);
  });

  it('are not seen in a long body of events with names of columns', () => {
    const lines = rows(20_000, 'df_event_log_id').map((row) => row.with(4, 'df_unified_id'));
    expect(scan(textOf([HEADER, ...lines])).rows).toBe(20_000);
  });
});

describe('a body that is no documented CSV is refused for good', () => {
  const all = [HEADER, ...rows(50)];
  it.each<[string, string | Uint8Array, RegExp]>([
    ['lines that end in CR alone', textOf(all, ',', '\r'), /CR in its header/],
    ['lines that end in CR CR LF', textOf(all, ',', '\r\r\n'), /CR in its header/],
    ['a line sep=', `sep=,\n${textOf(all)}`, /not one column that every export has/],
    ['semicolons', textOf(all, ';'), /not one column that every export has/],
    ['UTF-16', Buffer.from(`\ufeff${textOf(all)}`, 'utf16le'), /UTF-8/],
    ['UTF-16 with quotes', Buffer.from(`\ufeff${textOf([HEADER.map((name) => `"${name}"`)])}`, 'utf16le'), /UTF-8/],
    ['names in another encoding', Buffer.from(textOf([[...SYSTEM, EUC_KR], ...rows(1)]), 'latin1'), /UTF-8/],
    ['cells in another encoding', Buffer.from(textOf([HEADER, ...rows(50, EUC_KR)]), 'latin1'), /UTF-8/],
  ])('%s', (_, body, reason) => {
    const thrown = (() => {
      try {
        return scan(body);
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(UnusableCsv);
    expect(thrown).toMatchObject({ kind: 'config', exitCode: 2, message: expect.stringMatching(reason) });
  });
});

it('white space is refused once more than a mebibyte has come, although the body goes on', () => {
  const scanner = new ExportScanner({ needsEventColumns: true });
  const failure = malformedOf(() => {
    for (let i = 0; i < 17; i++) scanner.push(Buffer.alloc(64 * 1024, '\r\n'));
  });
  expect(failure.reason).toBe('no_header');
});

it('a name in the header may hold a line break in quotes', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const { columns, rows: count } = scan(textOf([[...HEADER, `"a${end}b"`], ...rows(2).map((row) => [...row, 'x'])]));
    expect([columns.at(-1)?.headerName, count]).toEqual([`a${end}b`, 2]);
  }
});

describe('broken characters in a body of UTF-8', () => {
  it('are replaced and counted where texts were cut within a character', () => {
    const cut = Buffer.from(textOf([HEADER, ...rows(50, '한글 \xff')]));
    const body = Buffer.from(cut.toString('latin1').replaceAll('\xc3\xbf', '\xed\x95'), 'latin1');
    expect(scan(body).invalidUtf8).toMatchObject({ cells: 50, first: { row: 2, column: 'memo' } });
  });

  it('are replaced and counted where few rows have them', () => {
    const lines = rows(1_000).map((row, n) => (n % 50 === 0 ? row.with(7, 'caf\xe9') : row));
    expect(scan(Buffer.from(textOf([HEADER, ...lines]), 'latin1')).invalidUtf8.cells).toBe(20);
  });
});
