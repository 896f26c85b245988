import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { idsFrom, idsFromFile, type ListOptions } from '../../../src/deletion/input/id-list.ts';
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

  it('is one id a line', async () => {
    expect(await read('a\r\n b \n\n00\n')).toEqual(['a', ' b ', '', '00']);
    expect(await read('\ufeffa')).toEqual(['a']);
    expect(await read('')).toEqual([]);
  });

  it('is a column of a CSV, whatever stands in it', async () => {
    const csv = 'n,id\r\n1,"a,""b"""\r\n2,\r\n3,"x\ny"\r\n';
    expect(await read(csv, { column: 'id' })).toEqual(['a,"b"', '', 'x\ny']);
    expect(await read(`\ufeff${csv}`, { column: 'n' })).toEqual(['1', '2', '3']);
  });

  it.each([[1], [2], [3]])('may begin with a byte order mark that a pipe cuts after byte %i', async (at) => {
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
  ])('is refused for %s, without its content', async (_name, text, options) => {
    const error = await read(text, options).then(
      () => undefined,
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ name: 'Failure', kind: 'config' });
    expect(error.message).not.toContain('secret');
  });

  it('is read by its file name', async () => {
    const path = join(folders.root, 'people.csv');
    writeFileSync(path, 'id\na\n');
    expect(await all(idsFromFile(path, { column: 'id' }))).toEqual(['a']);
    await expect(all(idsFromFile(path))).rejects.toThrow(/--column/);
    await expect(all(idsFromFile(join(folders.root, 'none.csv'), { column: 'id' }))).rejects.toThrow(/cannot be read/);
  });

  it.each(['people.txt', 'people', 'people.jsonl', 'people.csv.old'])(
    'is a CSV where a column is given, called %s',
    async (name) => {
      const path = join(folders.root, name);
      writeFileSync(path, 'n,id\n1,a\n2,b\n');
      expect(await all(idsFromFile(path, { column: 'id' }))).toEqual(['a', 'b']);
      await expect(all(idsFromFile(path, { column: 'no' }))).rejects.toThrow(/no column/);
    },
  );
});
