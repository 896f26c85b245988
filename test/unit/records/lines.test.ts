import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { headerColumns } from '../../../src/cells/columns/groups.ts';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { RowTokenizer } from '../../../src/cells/csv/tokenizer.ts';
import { RecordEncoder } from '../../../src/targets/records/record-encoder.ts';
import { RecordMemory } from '../../../src/targets/records/record-memory.ts';
import { planRecords } from '../../../src/targets/records/record-plan.ts';
import { RowKey } from '../../../src/targets/records/row-key.ts';
import { quoted } from '../../support/targets/csv.ts';
import { type PropertyKind, RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();
afterAll(() => fixture.close());
afterEach(() => {
  vi.restoreAllMocks();
});

const ID = 'df_event_detail_log_id';

/** Per line, the bytes that were reserved for it and those that it took. */
function watchRoom(): { readonly reserved: number; readonly taken: number }[] {
  const lines: { reserved: number; taken: number }[] = [];
  const { reserve, finish } = RecordMemory.prototype;
  let begun: { at: number; reserved: number } | undefined;
  const end = (at: number) => {
    if (begun !== undefined) lines.push({ reserved: begun.reserved, taken: at - begun.at });
    begun = undefined;
  };
  vi.spyOn(RecordMemory.prototype, 'reserve').mockImplementation(function (this: RecordMemory, more) {
    end(this.at);
    reserve.call(this, more);
    begun = { at: this.at, reserved: more };
  });
  vi.spyOn(RecordMemory.prototype, 'finish').mockImplementation(function (this: RecordMemory, given) {
    end(this.at);
    return finish.call(this, given);
  });
  return lines;
}

const ESCAPED = '\u0001';
const LARGE = 300_000;
const LONG_NAME = '한'.repeat(5_000);
const all = (names: readonly string[], kind: PropertyKind) => Object.fromEntries(names.map((name) => [name, kind]));
const numbered = Array.from({ length: 2_000 }, (_, i) => `n${i}`);

interface Shape {
  readonly header: readonly string[];
  readonly cells: readonly string[];
  readonly properties: Readonly<Record<string, PropertyKind>>;
}

const SHAPES: [name: string, shape: Shape][] = [
  [
    'a large id that is escaped wholly',
    { header: [ID], cells: [ESCAPED.repeat(LARGE)], properties: { _key: 'string', [ID]: 'string' } },
  ],
  [
    'very many short cells that do not fit',
    { header: numbered, cells: numbered.map(() => 'x'), properties: { ...all(numbered, 'long'), _rescued: 'object' } },
  ],
  [
    'a cell that does not fit below a very long name',
    { header: [LONG_NAME], cells: ['x'], properties: { [LONG_NAME]: 'long', _rescued: 'object' } },
  ],
  [
    'a large cell that does not fit and is escaped wholly',
    { header: ['n'], cells: [ESCAPED.repeat(LARGE)], properties: { n: 'long', _rescued: 'object' } },
  ],
  ['a large text', { header: ['note'], cells: ['t'.repeat(LARGE)], properties: { note: 'string' } }],
  [
    'a large text that is escaped wholly, behind another',
    {
      header: ['a', 'b'],
      cells: ['t'.repeat(10_000), '"'.repeat(LARGE)],
      properties: { a: 'string', b: 'string' },
    },
  ],
  [
    'a large list of numbers that become longer texts',
    { header: ['list'], cells: [`[${'1.0E15,'.repeat(LARGE / 7)}1.0E15]`], properties: { list: 'string[]' } },
  ],
  ['no cell that is sent', { header: ['a'], cells: ['1'], properties: { [LONG_NAME]: 'string' } }],
  [
    'numbers that become longer',
    { header: numbered, cells: numbered.map(() => '1e300'), properties: all(numbered, 'double') },
  ],
  [
    'times that become longer',
    { header: numbered, cells: numbered.map(() => '2026.1.2 3:04'), properties: all(numbered, 'instant') },
  ],
];

describe.each([
  ['with SIMD', true],
  ['without SIMD', false],
])('the maximum length of a record %s', (_, isFast) => {
  it.each(SHAPES)('suffices for %s', async (_name, { header, cells, properties }) => {
    if (!isFast) vi.spyOn(CsvMemory, 'open').mockImplementation(CsvMemory.withoutSimd);
    const lines = watchRoom();
    const row = cells.map(quoted).join(',');
    const csv = `${header.map(quoted).join(',')}\n${row}\n${row}\n`;
    const { text } = await fixture.write(csv, [streamOf('events', properties)], { timezone: 'Asia/Seoul' });
    expect(lines.length).toBe(2);
    for (const { reserved, taken } of lines) expect(taken).toBeLessThanOrEqual(reserved);
    expect(lines.reduce((sum, { taken }) => sum + taken, 0)).toBe(Buffer.byteLength(text));
  });
});

describe('a row of 64 MiB', () => {
  it.each([
    ['a list', `[${'1,'.repeat(LARGE / 2)}1]`],
    ['a list that does not fit', ESCAPED.repeat(LARGE)],
  ])('of %s has room in a memory of 4 GiB for its lines of all streams', async (_, cell) => {
    const lines = watchRoom();
    const names = ['events', 'event_logs', 'event_items'] as const;
    const streams = names.map((name) => streamOf(name, { list: 'long[]', _rescued: 'object' }));
    const row = `x:1,x,1,${quoted(cell)}`;
    await fixture.write(`${ID},df_event_log_id,df_items_x,list\n${row}\n`, streams);
    expect(lines.length).toBe(1);
    const [{ reserved }] = lines;
    expect((reserved / row.length + 1) * 64 * 2 ** 20).toBeLessThan(4 * 2 ** 30);
  });
});

describe('a line behind the first 2 GiB of a memory', () => {
  it('is the line that it is before them', () => {
    const stream = streamOf('events', { _key: 'string', [ID]: 'string', n: 'long', note: 'string' });
    const { header, columns } = fixture.spool(`${ID},n,note\nx,1,text\n`);
    const encoder = new RecordEncoder(planRecords(stream, { header, columns }, false), undefined, 0);
    const memory = new RecordMemory(encoder.tableBytes);
    encoder.writeTables(memory.csv.bytes, memory.start - encoder.tableBytes);
    const row = Buffer.from('x:1,12,text\n');
    const [tokenizer, key] = [new RowTokenizer(memory.csv), new RowKey(headerColumns(header))];
    const lineAt = (at: number) => {
      memory.at = at;
      memory.reserve(1 << 16);
      const { bytes } = memory.csv;
      bytes.set(row, memory.start);
      expect(tokenizer.next(memory.start, memory.start + row.length, true)).toBe(memory.start + row.length);
      key.read(bytes, tokenizer);
      encoder.write(tokenizer, key, 1, memory);
      return Buffer.from(bytes.slice(at, memory.at)).toString();
    };
    const line = lineAt(memory.start + 1_000);
    expect(JSON.parse(line)).toMatchObject({ record: { data: { _key: 'x:1', n: 12, note: 'text' } } });
    expect([2 ** 31 - 200, 2 ** 31].map(lineAt)).toEqual([line, line]);
  });
});

describe('the text of records', () => {
  it('ends with the block in which the run is stopped', async () => {
    const stop = new AbortController();
    let blocks = 0;
    const onBlock = () => {
      blocks++;
      stop.abort(new Error('stopped'));
    };
    const csv = `${ID},df_event_log_id,note\n${`x,x,${'n'.repeat(1_000)}\n`.repeat(2_500)}`;
    const stopped = fixture.write(csv, [streamOf('events', { note: 'string' })], { signal: stop.signal, onBlock });
    await expect(stopped).rejects.toThrow('stopped');
    expect(blocks).toBe(1);
  });
});
