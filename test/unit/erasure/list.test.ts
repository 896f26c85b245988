import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { IdList, refusedParagraph } from '../../../src/erasure/list/id-list.ts';
import { readList, readMapping } from '../../../src/erasure/list/list-file.ts';
import { newFolder } from '../../support/new-folder.ts';

const folder = newFolder();

const file = (text: string | Uint8Array): string => {
  const path = join(folder, 'list');
  writeFileSync(path, text);
  return path;
};
const rowsOf = async (text: string | Uint8Array, id?: string, requestedAt?: string) =>
  (await Readable.from(readList(file(text), id, requestedAt)).toArray()).map((row) => [row.rowNumber, row.id]);
const listOf = (...ids: unknown[]) => {
  const list = new IdList();
  for (const [i, id] of ids.entries()) list.add({ rowNumber: i + 1, id });
  return list;
};

describe('a list of people', () => {
  it.each([
    ['nothing', undefined, 'missing'],
    ['null', null, 'missing'],
    ['blanks alone', '  \u00a0', 'missing'],
    ['a number', 7, 'not_text'],
    ['a line break', 'a\nb', 'not_text'],
    ['half a character', '\ud800', 'not_text'],
    ['the text null', ' NULL ', 'placeholder'],
    ['an error of a spreadsheet', '#N/A', 'placeholder'],
    ['a wildcard', '*', 'placeholder'],
  ])('refuses %s in place of an ID, and counts it', (_, id, why) => {
    const list = listOf(id, 'a');
    expect(list.counts).toMatchObject({ received: 2, ids: 1, refused: { [why]: 1 } });
    expect(refusedParagraph(list.counts)).toMatch(/^1 of 2 rows is refused\. Row 1: the ID/);
  });

  it('names the first rows that it refuses, by reason', () => {
    const list = listOf(...Array(103).fill('null'), 'a', '');
    expect(refusedParagraph(list.counts)).toBe(
      '104 of 105 rows are refused. Row 105: the ID is missing, empty or blank. ' +
        'Rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 93 more: the ID is a placeholder such as null, undefined, NaN or *.',
    );
    expect(list.counts.refused_rows).toMatchObject({ missing: [105], placeholder: { length: 100 } });
  });

  it('has each ID once, as it is written, with its first row and its latest time', () => {
    const list = new IdList();
    list.add({ rowNumber: 2, id: 'A', requestedAt: '2026-01-01' });
    list.add({ rowNumber: 3, id: 'a' });
    list.add({ rowNumber: 4, id: 'A', requestedAt: '2026-01-02T03:04:05+09:00' });
    list.add({ rowNumber: 5, id: 'A', requestedAt: '2026-01-01' });
    expect(list.listedIds().map(({ id, rowNumber }) => [id, rowNumber])).toEqual([
      ['A', 2],
      ['a', 3],
    ]);
    expect(list.listedIds()[0].requestedAt).toBe(Date.UTC(2026, 0, 1, 18, 4, 5));
    expect(list.counts).toMatchObject({ received: 4, duplicates: 2, ids: 2 });
  });

  it('refuses a row whose time of request is no datetime, and takes a missing time', () => {
    const list = new IdList();
    const times = ['soon', '2026-13-01', '2026-02-30', ['2026-01-01'], { toString: 1 }, null, ''];
    for (const [i, requestedAt] of times.entries()) list.add({ rowNumber: i, id: `x${i}`, requestedAt });
    expect(list.counts).toMatchObject({ ids: 2, refused: { requested_at: 5 } });
  });

  it('takes a time without a zone for the earliest instant that it may be', () => {
    const list = new IdList();
    const times = ['2026-01-20T14:00:00', '2026-01-20 14:00Z', '2026-01-20T14:00:00+0900', '2026-01-20'];
    for (const [i, requestedAt] of times.entries()) list.add({ rowNumber: i, id: `x${i}`, requestedAt });
    const hours = list.listedIds().map(({ requestedAt = 0 }) => (requestedAt - Date.UTC(2026, 0, 20)) / 3_600_000);
    expect(hours).toEqual([0, 14, 5, -14]);
  });

  it('refuses a withdrawn request together with the rows before it, but not with those after it', () => {
    const list = listOf('a', 'b');
    list.withdraw({ rowNumber: 3, id: 'a' });
    list.withdraw({ rowNumber: 4, id: 'b' });
    list.add({ rowNumber: 5, id: 'b' });
    expect(list.listedIds().map(({ id }) => id)).toEqual(['b']);
    expect(list.counts).toMatchObject({ received: 5, refused: { withdrawn: 2 }, refused_rows: { withdrawn: [3, 4] } });
  });

  it('has a digest of its IDs and their times, in any order', () => {
    expect(listOf('a', 'b', 'a').digest).toBe(listOf('b', 'a').digest);
    expect(listOf('a', 'b').digest).not.toBe(listOf('a', 'c').digest);
    const timed = new IdList();
    timed.add({ rowNumber: 1, id: 'a', requestedAt: '2026-01-01' });
    expect(timed.digest).not.toBe(listOf('a').digest);
  });

  it('warns of blanks at the edges and of text that is not NFKC, by row', () => {
    const warnings = listOf('a', 'b ', '\u00a0c', '김'.normalize('NFD'), 'd\u200b', 'e\u{e0020}', 'Ａ').warnings();
    expect(warnings).toEqual([
      'Rows 2, 3, 5, 6: the ID begins or ends with a blank. It is used as it is.',
      'Rows 3, 4, 7: the ID is not in the usual Unicode form (NFKC). It is used as it is.',
    ]);
    expect(listOf('a b').warnings()).toEqual([]);
  });
});

describe('the file of a list', () => {
  it('has one ID a line if no column is named', async () => {
    expect(await rowsOf('\ufeffexternal_id\r\na b\n\nc\r\r\n d')).toEqual([
      [1, 'external_id'],
      [2, 'a b'],
      [4, 'c'],
      [5, ' d'],
    ]);
  });

  it.each<[string, string]>([
    ['commas', 'name,id\nKim,A-1\n'],
    ['semicolons', 'A-1\nKim;A-2\n'],
    ['tabs', 'A-1\tKim\n'],
    ['quotes', '"A-1"\n'],
    ['JSON Lines', '{"external_id":"A-1"}\n'],
    ['a JSON array', '["A-1"]\n'],
  ])('is refused with %s if no column is named: its lines are no IDs', async (_, text) => {
    const refused = { exitCode: 2, message: expect.stringContaining('--column') };
    await expect(rowsOf(text)).rejects.toMatchObject(refused);
  });

  it('is refused if it is a CSV by its name and no column is named', async () => {
    const path = join(folder, 'requests.CSV');
    writeFileSync(path, 'A-1\n');
    const read = Readable.from(readList(path)).toArray();
    await expect(read).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('--column') });
  });

  it('is CSV with a column, whose rows have the numbers of a spreadsheet', async () => {
    const csv = '\ufeffname,id\n"Kim, a",1\n"two\nlines",2\r\nx,"3"\n,\n\n';
    expect(await rowsOf(csv, 'id')).toEqual([
      [2, '1'],
      [3, '2'],
      [4, '3'],
      [5, ''],
    ]);
  });

  it('is JSON Lines if it begins with a brace, whose values keep their types', async () => {
    const lines = '\ufeff{"id":"a"}\n\n{"id":7}\r\n{"x":1}\n';
    expect(await rowsOf(lines, 'id')).toEqual([
      [1, 'a'],
      [3, 7],
      [4, undefined],
    ]);
  });

  it('is JSON Lines also if a pipe gives its brace later than a mark or a blank line', async () => {
    const chunks = ['\ufeff', '\n', '{"id":"a"}\n'].map((text) => Buffer.from(text));
    expect(await Readable.from(readList(Readable.from(chunks), 'id')).toArray()).toMatchObject([
      { rowNumber: 2, id: 'a' },
    ]);
  });

  it('finds its column in every Unicode form of the name', async () => {
    expect(await rowsOf(`${'고객'.normalize('NFD')}\n1\n`, '고객')).toEqual([[2, '1']]);
  });

  it.each([
    ['a;b\n1;2\n', 'b', /has no column "b": its first line has 1 column, .*\. Save it as CSV with commas\./],
    ['Kim,010-1234\n', 'id', /^((?!Kim|010).)* 2 columns, .* no header, put one above it\. Nothing was done\.$/],
    ['a,a\n1,2\n', 'a', /has the column "a" more than once/],
    ['a,b\n1\n', 'a', /is no whole CSV: row 2 .* has 1 cells, wanted 2 cells/],
    ['a,b\r1,2\r3,4\r', 'a', /ends its lines with CR alone: save it as CSV UTF-8/],
    ['{"b":1}\n', 'a', /line 1: there is no a, but "b"/],
    ['{"a":1}\nx\n', 'a', /line 2: this is no JSON object/],
    [Buffer.from('a\n\xb0\xa1\n', 'latin1'), 'a', /is not valid UTF-8/],
    [Buffer.from('\ufeffa\n', 'utf16le'), 'a', /is not valid UTF-8/],
    [Buffer.from([0xb0, 0xa1, 0x0a]), undefined, /is not valid UTF-8/],
  ])('is refused with the reason: %j', async (text, column, message) => {
    await expect(rowsOf(text, column)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
  });

  it('is refused if it cannot be read', async () => {
    await expect(Readable.from(readList(join(folder, 'none'))).toArray()).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('cannot be read'),
    });
  });
});

describe('a mapping', () => {
  const ids = new Set(['a', 'b']);

  it('gives the IDs of the list their unified ids, each once', async () => {
    const csv = 'df_unified_id,external_id\nu1,a\nu2,a\nu1,a\nnull,b\nu3,other\n';
    expect([...(await readMapping(file(csv), ids))]).toEqual([['a', ['u1', 'u2']]]);
  });

  it('is named if it lacks a column', async () => {
    await expect(readMapping(file('id,df_unified_id\n'), ids)).rejects.toThrow(/^The mapping .* has no column/);
  });

  it('is refused for a value that is not text', async () => {
    const lines = '{"external_id":"a","df_unified_id":7}\n';
    await expect(readMapping(file(lines), ids)).rejects.toThrow(/Row 1 .* is not text/);
  });
});
