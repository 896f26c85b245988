import { describe, expect, it } from 'vitest';
import { Scanner, type ScannerOptions } from '../../../src/cells/columns/scanner.ts';
import { scanIn } from '../../support/scan.ts';

const scan = (csv: string, options: Partial<ScannerOptions> = {}) =>
  scanIn(new Scanner({ requireColumns: false, ...options }), Buffer.from(csv));

describe('the first and the last datetime of a column', () => {
  const [early, middle, late] = ['05.900', '06.250', '07.100'].map((seconds) => `2026-01-02 03:04:${seconds}`);

  it.each([[[early, middle, late]], [[late, middle, early]], [[middle, early, late]]])(
    'are its least and greatest second, in any order of cells: %s',
    (times) => {
      const [{ first, last }] = scan(`t\n${times.map((time) => `${time}\n`).join('')}`).result.columns;
      const second = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
      expect([first, last]).toEqual([second, second + 2]);
    },
  );

  it('are given for a datetime column only', () => {
    for (const csv of ['t\n2026-01-02 03:04:05\nx\n', 't\n2026-01-02\n']) {
      const [column] = scan(csv).result.columns;
      expect(column).not.toHaveProperty('first');
      expect(column).not.toHaveProperty('last');
    }
  });
});

describe('cells that are not UTF-8', () => {
  const bad = (text: string, options: Partial<ScannerOptions> = {}) => {
    const body = Buffer.from(text, 'latin1').map((byte) => (byte === 0x23 ? 0xff : byte));
    return scanIn(new Scanner({ requireColumns: false, ...options }), body).result.invalidUtf8;
  };

  it('count once each, and the first is located', () => {
    expect(bad('a,b\nx,y\n')).toEqual({ cells: 0 });
    expect(bad('a,b\nx,y\n,##x#\n#,#\n')).toEqual({ cells: 3, first: { row: 3, column: 'b' } });
    expect(bad('a,b,c\n,"#,""#",#\n')).toEqual({ cells: 2, first: { row: 2, column: 'b' } });
  });

  it('do not count in rows that are left out', () => {
    const suppression = { has: () => true };
    expect(bad('df_unified_id,b\nx,#\n,#\n', { suppression })).toEqual({ cells: 1, first: { row: 3, column: 'b' } });
  });
});

describe('a header', () => {
  it('may have empty names, but not only those', () => {
    expect(scan('a,,b\n1,2,3\n').result.columns.map(({ name, filled }) => [name, filled])).toEqual([
      ['a', 1],
      ['', 1],
      ['b', 1],
    ]);
    expect(() => scan(',,\n1,2,3\n')).toThrow('column names');
    expect(() => scan('"",""\n1,2\n')).toThrow('column names');
  });

  it('is the whole of an export without rows', () => {
    const { result } = scan('a,b\n');
    expect(result).toMatchObject({
      rows: 0,
      suppressed: 0,
      hasDuplicateOrMissingIds: false,
      eventNames: [],
      longestRow: 4,
    });
    expect(result.columns).toMatchObject([{ filled: 0 }, { filled: 0 }]);
  });
});
