import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { idsFrom, idsFromFile, type ListOptions, rowsFromFile } from '../../../src/erasure/input/id-list.ts';
import { Folders } from '../../support/deletion/deletions.ts';

let folders: Folders;
beforeEach(() => {
  folders = new Folders();
});
afterEach(() => folders.close());

const all = async (values: AsyncIterable<unknown>): Promise<unknown[]> => {
  const out: unknown[] = [];
  for await (const value of values) out.push(value);
  return out;
};

describe('a list of ids', () => {
  const read = (text: string | Buffer, options?: ListOptions) =>
    all(idsFrom(Readable.from([Buffer.from(text)]), 'list', options));

  it('has one id a line', async () => {
    expect(await read('a\r\n b \n\n00\n')).toEqual(['a', ' b ', '', '00']);
    expect(await read('\ufeffa')).toEqual(['a']);
    expect(await read('')).toEqual([]);
  });

  it('may begin with the name of the id field, which is not an id', async () => {
    expect(await read('member\nexternal_id\n', { header: 'member' })).toEqual(['external_id']);
    expect(await read('\n external_id \r\na\nexternal_id\n', { header: 'external_id' })).toEqual([
      '',
      'a',
      'external_id',
    ]);
  });

  it.each([
    ['"external_id"', 'a column'],
    ['External ID', 'a column'],
    ['externalId', 'a column'],
    ['\n\nID', 'a column'],
    ['Member-No.', 'a column'],
    ['external_id,name', 'several columns'],
    ['name\tmember_no', 'several columns'],
    ['nr;"id";name', 'several columns'],
  ])('is refused when its first line is a header in another spelling: %j', async (text, what) => {
    const refused = read(`${text}\nkim\n`, { header: 'member_no' });
    await expect(refused).rejects.toThrow(`looks like the header of ${what}: name the column with --column`);
    expect(await read(`kim\n${text.trim()}\n`, { header: 'member_no' })).toEqual(['kim', text.trim()]);
  });

  it.each(['["kim","lee"]', '[', ' [ "kim",', '[{"external_id":"kim"}]', '"kim"', '"kim",'])(
    'is refused when its first ID is of JSON or a quoted cell, whose text is nobody: %j',
    async (text) => {
      await expect(read(`\n${text}\nlee\n`)).rejects.toThrow(/Line 2 of .* looks like JSON or a quoted cell.*--column/);
      await expect(read(`member_no\n${text}\n`, { header: 'member_no' })).rejects.toThrow(/Line 2 of/);
      expect(await read(`lee\n${text}\n`)).toEqual(['lee', text]);
    },
  );

  it('is a column of a CSV, with any content', async () => {
    const csv = 'n,id\r\n1,"a,""b"""\r\n2,\r\n3,"x\ny"\r\n';
    expect(await read(csv, { column: 'id' })).toEqual(['a,"b"', '', 'x\ny']);
    expect(await read(`\ufeff${csv}`, { column: 'n' })).toEqual(['1', '2', '3']);
  });

  it.each([[1], [2], [3]])('may begin with a byte order mark that a pipe splits after byte %i', async (at) => {
    const cut = (text: string) => {
      const bytes = Buffer.from(`\ufeff${text}`);
      return Readable.from([bytes.subarray(0, at), bytes.subarray(at)]);
    };
    expect(await all(idsFrom(cut('a\nb'), 'list'))).toEqual(['a', 'b']);
    expect(await all(idsFrom(cut('id\na'), 'list', { column: 'id' }))).toEqual(['a']);
    expect(await all(idsFrom(cut('{"id":"a"}'), 'list', { column: 'id' }))).toEqual(['a']);
  });

  it('may begin with blank lines', async () => {
    const json = '\r\n \n{"id":"a"}\n';
    expect(await read(json, { column: 'id' })).toEqual(['a']);
    expect(
      await all(idsFrom(Readable.from([Buffer.from('\n\n\n\n\n'), Buffer.from(json)]), 'list', { column: 'id' })),
    ).toEqual(['a']);
    const marked = Readable.from([Buffer.from('\ufeff\n'), Buffer.from(json)]);
    expect(await all(idsFrom(marked, 'list', { column: 'id' }))).toEqual(['a']);
    await expect(read(json)).rejects.toThrow('say which with --column');
    expect(await read('\n\na\n')).toEqual(['', '', 'a']);
  });

  it('is a member of JSON lines, with its type', async () => {
    expect(await read('{"id":"a"}\n\n{"id":5}\n{}\n{"id":null}', { column: 'id' })).toEqual(['a', 5, undefined, null]);
    expect(await read('{"a":1}', { column: 'toString' })).toEqual([undefined]);
  });

  it.each<[string, string | Buffer, ListOptions]>([
    ['no such column', 'a,b\n1,2\n', { column: 'c' }],
    ['a column twice', 'a,a\n1,2\n', { column: 'a' }],
    ['a row too short', 'a,b\nsecret\n', { column: 'a' }],
    ['a quote inside a field', 'a\nx"secret\n', { column: 'a' }],
    ['a field after a quote', 'a\n"x"secret\n', { column: 'a' }],
    ['an open quote', 'a\n"secret\n', { column: 'a' }],
    ['bytes that are no text, in CSV', Buffer.from([0x61, 0x0a, 0xff, 0x0a]), { column: 'a' }],
    ['bytes that are no text, in lines', Buffer.from([0x61, 0x0a, 0xff, 0x0a]), {}],
    ['a cut character at its end', Buffer.from([0x61, 0x0a, 0xe2, 0x82]), { column: 'a' }],
    ['a line that is no JSON', '{"a":1}\nsecret\n', { column: 'a' }],
    ['no column named', '{"a":1}\n', {}],
  ])('is refused for %s, without quoting it', async (_name, text, options) => {
    const error = await read(text, options).then(
      () => undefined,
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ name: 'UserError', kind: 'config' });
    expect(error.message).not.toContain('secret');
  });

  it('has the format of its file name', async () => {
    const path = join(folders.root, 'people.csv');
    writeFileSync(path, 'id\na\n');
    expect(await all(idsFromFile(path, { column: 'id' }))).toEqual(['a']);
    await expect(all(idsFromFile(path))).rejects.toThrow(/--column/);
    await expect(all(idsFromFile(join(folders.root, 'none.csv'), { column: 'id' }))).rejects.toThrow(/cannot be read/);
  });

  it.each(['people.txt', 'people', 'people.jsonl', 'people.csv.old'])(
    'is a CSV when a column is given, in a file called %s',
    async (name) => {
      const path = join(folders.root, name);
      writeFileSync(path, 'n,id\n1,a\n2,b\n');
      expect(await all(idsFromFile(path, { column: 'id' }))).toEqual(['a', 'b']);
      await expect(all(idsFromFile(path, { column: 'no' }))).rejects.toThrow(/no column/);
    },
  );

  it.each(['people.CSV', 'people.tsv', 'people.json', 'people.jsonl', 'people.ndjson'])(
    'of columns requires a column to be named: %s',
    async (name) => {
      const path = join(folders.root, name);
      writeFileSync(path, 'id\na\n');
      await expect(all(idsFromFile(path))).rejects.toThrow('has named columns: say which with --column');
      expect(await all(idsFromFile(path, { column: 'id' }))).toEqual(['a']);
    },
  );

  it('gives several columns of each row in the requested order, for CSV and JSON lines', async () => {
    const path = join(folders.root, 'map');
    writeFileSync(path, '\ufeffa,b,c\n1,2,3\n\n4,5,6\n');
    expect(await all(rowsFromFile(path, ['c', 'a']))).toEqual([
      ['3', '1'],
      ['6', '4'],
    ]);
    writeFileSync(path, '{"a":1,"b":2}\n \n{"b":null}\n');
    expect(await all(rowsFromFile(path, ['b', 'a']))).toEqual([
      [2, 1],
      [null, undefined],
    ]);
    await expect(all(rowsFromFile(join(folders.root, 'none'), ['a']))).rejects.toThrow(/The list .* cannot be read/);
  });

  it('of CSV is read under every line end, with or without a last one', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const csv = ['n,id', '1,a', '2,"b', 'c"'].join(end);
      for (const text of [csv, csv + end, `\ufeff${csv}`]) {
        expect(await read(text, { column: 'id' })).toEqual(['a', `b${end}c`]);
      }
    }
  });

  it('is a list of plain lines also after very many blank ones', async () => {
    const blank = (count: number) =>
      all(idsFrom(Readable.from([Buffer.alloc(count, '\n'), Buffer.from('{"id":"a"}')]), 'list'));
    await expect(blank(64 * 1024 - 1)).rejects.toThrow('say which with --column');
    expect(await blank(64 * 1024)).toHaveLength(64 * 1024 + 1);
  });

  it('is read only as far as it is consumed', async () => {
    let [isClosed, chunks] = [false, 0];
    const endless = async function* () {
      try {
        for (; ; chunks++) yield Buffer.from(chunks === 0 ? 'id\n' : `p${chunks}\n`);
      } finally {
        isClosed = true;
      }
    };
    for await (const id of idsFrom(endless(), 'list', { column: 'id' })) {
      expect(id).toBe('p1');
      break;
    }
    await expect.poll(() => isClosed).toBe(true);
  });

  const bad = Buffer.from([0xff]);
  it.each<[string, (string | Buffer)[], ListOptions, RegExp]>([
    ['text', ['a\nb\n', bad], {}, /not valid UTF-8 at or after line 3/],
    ['CSV', ['id\nb\nc\n', bad, 'd\n'], { column: 'id' }, /not valid UTF-8 at or after line 4/],
    ['no JSON', ['{"id":1}\n\n', '{id'], { column: 'id' }, /Line 3 of the list .* is not JSON/],
    ['no object', ['{"id":1}\n', '[1]\n'], { column: 'id' }, /Line 2 of the list .* is no object/],
    ['a member twice', ['{"id":"a","i\\u0064":"b"}\n'], { column: 'id' }, /Line 1 .* has a member twice/],
    ['a long row', ['id\na\n', 'b,c\n'], { column: 'id' }, /not sound CSV near line 3 \(CSV_[A-Z_]+\)/],
    ['no column', ['id\na\n'], { column: 'no' }, /has no column "no"/],
    ['two columns', ['id,id\na,b\n'], { column: 'id' }, /has more than one column "id"/],
  ])('names the line at fault: %s', async (_name, parts, options, why) => {
    const input = Readable.from(parts.map((part) => Buffer.from(part)));
    await expect(all(idsFrom(input, 'list', options))).rejects.toThrow(why);
  });

  it('keeps ids unchanged, with a carriage return inside or split by a pipe', async () => {
    expect(await read('a\rb\r\nc\r\r\n')).toEqual(['a\rb', 'c\r']);
    const bytes = Buffer.from('id\n한국\n');
    const cut = Readable.from(Array.from(bytes, (byte) => Buffer.of(byte)));
    expect(await all(idsFrom(cut, 'list', { column: 'id' }))).toEqual(['한국']);
    expect(await read('\ufeff\ufeffid\na\n', { column: '\ufeffid' })).toEqual(['a']);
  });

  it('is refused with one message for all its problems, also from a file', async () => {
    const path = join(folders.root, 'people.csv');
    writeFileSync(path, 'id\na\n');
    await expect(all(idsFromFile(path, { column: 'no' }))).rejects.toThrow(/^The list \S* has no column "no"/);
  });

  it('fails when its source fails', async () => {
    const broken = async function* () {
      yield Buffer.from('key\na\n');
      throw new Error('the pipe is gone');
    };
    for (const options of [{}, { column: 'key' }]) {
      await expect(all(idsFrom(broken(), 'list', options))).rejects.toThrow('the pipe is gone');
    }
  });
});
