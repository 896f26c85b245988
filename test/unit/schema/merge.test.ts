import { describe, expect, it } from 'vitest';
import { type ColumnScan, mergeColumns } from '../../../src/cells/columns/scan.ts';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { DATE, DATETIME_DASH, DATETIME_DOT, NULL_TEXT } from '../../../src/cells/types/evidence.ts';
import { scanIn } from '../../support/scan.ts';

const scan = (csv: string, timezone?: string) =>
  scanIn(new Scanner({ requireSystem: false, timezone }), Buffer.from(csv)).result.columns;
const csvOf = (header: string, cells: readonly string[]) => [header, ...cells, ''].join('\n');
const withoutSeen = (columns: readonly ColumnScan[]) => columns.map(({ seen: _, ...column }) => column);

/** Merged from one export for each list of rows. */
const merged = (header: string, ...parts: readonly (readonly string[])[]) =>
  mergeColumns(
    parts.map((cells) => scan(csvOf(header, cells))),
    false,
  );

describe('the merged columns of several exports', () => {
  it.each<[string, string, string[][]]>([
    ['numbers', 'n', [['1', '2'], ['1.5'], ['""', 'null']]],
    ['numbers and a text', 'n', [['1', 'null'], ['x']]],
    ['times', 't', [['2026-01-05'], ['2026-01-02 03:04:05', '2026-01-09 00:00:00'], ['2026-01-03']]],
    ['times, none in the first', 't', [['null'], ['2026-01-02 03:04:05'], ['2026-01-01 03:04:05']]],
    ['times, none in the last', 't', [['2026-01-02 03:04:05'], ['null']]],
    ['times in falling order', 't', [['2026-01-09 00:00:00'], ['2026-01-05 00:00:00'], ['2026-01-02 00:00:00']]],
    ['a type that is declared', 'df_server_datetime', [['2026-01-05', '7', 'x'], ['1'], ['2026-01-02']]],
    ['a declared type that only the last shows', 'df_discount', [['null'], ['2']]],
    ['a declared type that only the first shows', 'df_discount', [['2'], ['null']]],
    ['a declared type that none shows', 'df_discount', [['null'], ['null']]],
    ['two columns of one name', 'a,a', [['1,x'], ['2,y', ',2026-01-01']]],
    ['a known column and one more of its name', 'df_discount,df_discount', [['1,x'], ['2,y']]],
    ['a second of its name, all numbers', 'df_keyword,df_keyword', [['x,1'], ['y,2.5']]],
    ['two names of the event', 'df_event_name,event_name', [['e,1'], ['f,2']]],
  ])('equal those of one export with all their rows: %s', (_name, header, parts) => {
    const whole = withoutSeen(scan(csvOf(header, parts.flat())));
    expect(withoutSeen(merged(header, ...parts))).toEqual(whole);
  });

  it('are the union by name, in order of first occurrence', () => {
    const columns = mergeColumns([scan('b,a\n1,2\n'), scan('a,c,b,b\n1,2,3,4\n'), scan('d\n5\n')], false);
    expect(columns.map(({ source, filled }) => [source, filled])).toEqual([
      ['b', 2],
      ['a', 2],
      ['c', 1],
      ['b', 1],
      ['d', 1],
    ]);
  });

  it('name only first cells that gave new evidence', () => {
    const [column] = merged(
      't',
      ['2026-01-02', 'null'],
      ['2026-01-03', '2026.1.2 3:04', 'null'],
      ['2026-01-02T03:04:05'],
    );
    expect(column.seen?.map(({ evidence, shape }) => [evidence, shape])).toEqual([
      [DATE, '9999-99-99'],
      [NULL_TEXT, 'aaaa'],
      [DATETIME_DOT, '9999.9.9 9:99'],
      [DATETIME_DASH, '9999-99-99a99:99:99'],
    ]);
    const [empty] = merged('n', [''], ['']);
    expect(empty).not.toHaveProperty('seen');
    expect(empty).not.toHaveProperty('type');
    expect(empty).not.toHaveProperty('hashed');
  });

  it('stay marked as hashed', () => {
    const hashed = scan('a\nx\n').map((column) => ({ ...column, hashed: true as const }));
    expect(mergeColumns([hashed, hashed], false)[0]).toMatchObject({ hashed: true, filled: 2 });
  });
});
