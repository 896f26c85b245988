import { describe, expect, it } from 'vitest';
import { Columns } from '../../../src/cells/columns/columns.ts';
import { headerColumns } from '../../../src/cells/columns/groups.ts';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { DATA_AT } from '../../../src/cells/csv/layout.ts';
import { RowTokenizer, SENTINEL } from '../../../src/cells/csv/tokenizer.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import * as forms from '../../support/column-types.ts';
import fc from '../../support/property.ts';
import { quoted } from '../../support/targets/csv.ts';

const ROWS = 12;
const NAMES = [
  'df_event_detail_log_id',
  'event_name',
  'df_server_datetime',
  'df_items_df_price',
  'df_items_df_quantity',
];
const ZONES = [undefined, 'Asia/Seoul', 'America/New_York', 'Australia/Lord_Howe'];
const SIZE = 1 << 16;

const words = fc.constantFrom('', '', 'null', 'text', 'purchase', 'text of more than sixteen bytes, "quoted"', '한글');
/** Cells on either side of what is plain. */
const EDGES = [
  ['0', '-0', '7', '-7', '007', '-', '999999999999999', '9999999999999999', '-9223372036854775808', '5.', '-5x'],
  ['0.5', '-0.5', '-0.0', '00.5', '.5', '12.50', '0.30000000000000004', '123456789012345.5', '1.5E10', '2', '1.5.5'],
  ['2024-02-29', '2023-02-29', '2026-12-31', '2026-00-01', '2026-01-00', '0001-01-01', '0000-01-01', '2026-1-01'],
  ['2026-01-02 03:04:05', '2026-01-02T03:04:05.6', '2026-01-02 24:00:00', '2026-01-02 23:60:00', '2026-01-02 23:59:60'],
  ['9999-12-31 23:59:59.999999', '2026-01-02 03:04:05.1234567', '2026-01-02 03:04:05.', '2026-01-02 03:04:05Z', 'null'],
  [
    '2026.1.2 3:04',
    '2026.12.31 23:59',
    '2026.1.2 24:00',
    '2026.1.2 3:4',
    '2026.13.1 0:00',
    '2026.2.30 0:00',
    '2026.12345',
  ],
  [
    '[]',
    '[null]',
    '[1]',
    '[1,null,-7]',
    '[1,2.5]',
    '[1, 2]',
    '[1,]',
    '[,1]',
    '[1',
    '[1]2]',
    '[-0]',
    '[007]',
    '[1e5]',
    '[',
  ],
  [
    '["a"]',
    '["a b","한글"]',
    '["a", "b"]',
    '["a\\n"]',
    '["a\n"]',
    '["a","b",null]',
    '["a",1]',
    '["a]',
    '["a"b]',
    '[""]',
    ' []',
  ],
  ['TRUE', 'FALSE', 'true', 'false', 'True', 'FALSe', 'fALSE', 'TRUES', 'null', 'nul'],
] as const;
const edges = fc
  .constantFrom(...EDGES)
  .chain((some) => fc.subarray<string>([...some], { minLength: 1, maxLength: 3 }))
  .map((some) => some.map((cell) => fc.constant(cell)));
const column = fc
  .oneof(edges, edges, forms.someForms, fc.constantFrom([forms.cells], [words]))
  .chain((some) => fc.array(fc.oneof(...some, ...some, words), { minLength: ROWS, maxLength: ROWS }));
const columns = fc.array(column, { minLength: 6, maxLength: 12 });

/** Decimals of 14 to 18 digits: from 16 on, not each is the shortest text of a double. */
const longDecimals = fc
  .tuple(fc.bigInt({ min: 10n ** 13n, max: 10n ** 18n - 1n }), fc.integer({ min: 1, max: 17 }))
  .map(([digits, fraction]) => {
    const text = String(digits).padStart(fraction + 1, '0');
    return `${text.slice(0, -fraction)}.${text.slice(-fraction)}`;
  });
/** Times less than two milliseconds apart. */
const closeTimes = fc.integer({ min: 0, max: 1_999 }).map((us) => `2026-01-02 03:04:05.${String(us).padStart(6, '0')}`);
const fineColumn = fc.oneof(
  fc.array(longDecimals, { minLength: ROWS, maxLength: ROWS }),
  fc.array(closeTimes, { minLength: ROWS, maxLength: ROWS }),
);
const fine = fc.array(fineColumn, { minLength: 6, maxLength: 12 });

describe('cells read by SIMD', () => {
  it('give the same evidence for their columns as cells read by TypeScript', () => {
    fc.assert(
      fc.property(fc.oneof(columns, columns, fine), fc.constantFrom(...ZONES), (cells, timezone) => {
        const names = cells.map((_, i) => NAMES[i] ?? `x${i}`);
        const zone = timezone === undefined ? undefined : new Zone(timezone);
        const learn = (memory: CsvMemory) => {
          const learnt = new Columns(headerColumns(names), [], zone, memory);
          // Twice: what a cell is taken for must not depend on what was learnt before.
          const rows = [...rowsOf(cells), ...rowsOf(cells)];
          read(rows, memory, (bytes, tokenizer, row) => learnt.observe(bytes, tokenizer, row + 2));
          const ids = learnt.finish(rows.length);
          return { scans: learnt.scans(), ids, eventNames: learnt.eventNames() };
        };
        expect(learn(CsvMemory.open(SIZE))).toEqual(learn(CsvMemory.withoutSimd(SIZE)));
      }),
      { numRuns: 150 },
    );
  });
});

const rowsOf = (cells: readonly (readonly string[])[]): string[] =>
  Array.from({ length: ROWS }, (_, row) => `${cells.map((column) => quoted(column[row] ?? '')).join(',')}\n`);

/** Reads rows from a memory. */
function read(
  rows: readonly string[],
  memory: CsvMemory,
  each: (bytes: Uint8Array, tokenizer: RowTokenizer, row: number) => void,
): void {
  const tokenizer = new RowTokenizer(memory);
  rows.forEach((text, row) => {
    const { bytes } = memory;
    const end = DATA_AT + Buffer.from(text).copy(bytes, DATA_AT);
    bytes[end] = SENTINEL;
    expect(tokenizer.next(DATA_AT, end, true)).toBe(end);
    each(bytes, tokenizer, row);
  });
}
