import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { widthOf } from '../../../src/cli/terminal/layout.ts';
import { newFolder } from '../../support/new-folder.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { csvOf } from '../../support/targets/csv.ts';

const dir = newFolder();

let files = 0;
function fileOf(content: string | Uint8Array): string {
  const path = join(dir, `file-${++files}.csv`);
  writeFileSync(path, content);
  return path;
}

const pinned = (source: string) =>
  fileOf(JSON.stringify({ v: 1, columns: [{ source, group: 'custom', type: 'long' }] }));

async function run(argv: readonly string[], columns = 80) {
  const { code, stdout, stderr } = await runHere(['inspect', ...argv], { columns });
  return { code, out: stdout.split('\n').slice(0, -1), err: stderr.trimEnd() };
}

async function json(path: string, ...more: string[]) {
  const { out, code } = await run([path, '--json', ...more]);
  expect(code).toBe(0);
  const result = JSON.parse(out.join(''));
  const columns = new Map<string, object>(result.columns.map((one: { source: string }) => [one.source, one]));
  return { result, column: (name: string) => columns.get(name) };
}

const EXPORT = csvOf([
  { id: 'e:1', n: '10', x: '1.50', tags: '["a","b"]', memo: 'null', zip: '007' },
  { id: 'e:2', n: '9', x: '-2', tags: 'null', memo: '안녕, "너"', zip: '010' },
  { id: 'f', n: '9', df_items_k: 'v', df_items_df_price: 'free' },
  { id: 'g', n: '9', blank: '' },
]);

describe('inspect', () => {
  it('gives group and type of every column, and whether its cells fit', async () => {
    const { result, column } = await json(fileOf(EXPORT));
    expect(result).toMatchObject({ v: 1, rows: 4, bytes: Buffer.byteLength(EXPORT), missing_columns: [] });
    expect(column('n')).toMatchObject({ group: 'custom', type: 'long', filled: 4, fits: true });
    expect(column('x')).toMatchObject({ type: 'double', filled: 2 });
    expect(column('tags')).toMatchObject({ type: 'string[]' });
    expect(column('memo')).toMatchObject({ type: 'string', filled: 2 });
    expect(column('zip')).toMatchObject({ type: 'string' });
    expect(column('blank')).toMatchObject({ type: null, filled: 0 });
    expect(column('df_items_k')).toMatchObject({ group: 'custom_item' });
    expect(column('df_items_df_price')).toMatchObject({ type: 'double', fits: false });
  });

  it('shows what a pinned schema would rescue', async () => {
    const { column } = await json(fileOf(EXPORT), '--schema', pinned('memo'));
    expect(column('memo')).toMatchObject({ type: 'long', fits: false });
    const { out } = await run([fileOf(EXPORT), '--schema', pinned('memo')]);
    expect(out.find((line) => line.includes(' memo '))).toContain('some cells');
  });

  it('gives a pinned type to the first column of a name alone, as sync does', async () => {
    const columns = ['long', 'string'].map((type) => ({ source: 'n', group: 'custom', type }));
    const { result } = await json(fileOf('n,n\n1,x\n'), '--schema', fileOf(JSON.stringify({ v: 1, columns })));
    expect(result.columns).toMatchObject([{ type: 'long' }, { type: 'string', fits: true }]);
  });

  it('takes the types of column_types before the pinned ones, as sync does', async () => {
    const config = fileOf(JSON.stringify({ column_types: { n: 'string', memo: 'double' } }));
    const { column } = await json(fileOf(EXPORT), '--config', config, '--schema', pinned('n'));
    expect(column('n')).toMatchObject({ type: 'string', fits: true });
    expect(column('memo')).toMatchObject({ type: 'double', fits: false });
  });

  it.each(['df_event_name', 'event_name'])('takes a type of the event name by both of its names: %s', async (name) => {
    const config = fileOf(JSON.stringify({ column_types: { [name]: 'long' } }));
    for (const header of ['df_event_name', 'event_name']) {
      const { column } = await json(fileOf(`${header}\nlogin\n`), '--config', config);
      expect(column(header)).toMatchObject({ type: 'long' });
    }
  });

  it('does not say whether texts of the service fit another type that a setting gives them', async () => {
    const config = ['--config', fileOf(JSON.stringify({ column_types: { df_keyword: 'long' } }))];
    const file = fileOf(csvOf([{ id: 'e', df_keyword: '12' }]));
    expect((await json(file, ...config)).column('df_keyword')).toMatchObject({ type: 'long', fits: null });
    const { out } = await run([file, ...config]);
    expect(out.find((line) => line.includes(' df_keyword '))).toContain('not known');
  });

  it('takes datetimes with a zone where the configuration names a zone', async () => {
    const path = fileOf(csvOf([{ id: 'e', at: '2026-01-01T10:00:00+09:00' }]));
    const config = fileOf(JSON.stringify({ timezone: 'Asia/Seoul' }));
    expect((await json(path, '--config', config)).column('at')).toMatchObject({ type: 'datetime' });
    expect((await json(path)).column('at')).toMatchObject({ type: 'string' });
  });

  it('shows names with escapes, one line each, within the width of the terminal', async () => {
    const evil = 'x\u001b[2J\n  forged';
    const { out, err } = await run([fileOf(csvOf([{ id: 'e', [evil]: 'v', ['설문'.repeat(30)]: 'v' }]))], 60);
    expect(`${out.join('')}${err}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    expect(out.join('\n')).toContain('x\\u001b[2J\\u000a  forged');
    expect(out.slice(1).filter((line) => widthOf(line) > 60)).toEqual([]);
  });

  it('says what is wrong with the rows', async () => {
    const rows = csvOf([{ id: 'a' }, { id: 'a', memo: 'x' }]).replace('x', '\u0000bad');
    const bytes = Buffer.from(rows, 'latin1');
    bytes[bytes.indexOf(0)] = 0xff;
    const { out, err, code } = await run([fileOf(bytes.subarray(0, -1))]);
    expect(code).toBe(0);
    expect(out.join('\n')).toContain('Perhaps some rows have no id, or one that an earlier row has');
    expect(out.join('\n')).toContain('1 cell not valid UTF-8');
    expect(out.join('\n')).toContain('The last row has no line end');
    expect((await run([fileOf('a,b\n1,2\n')])).err).toContain('lacks columns that every export of events has: ');
    expect(err).toBe('');
  });

  it('drops and hashes what the configuration says, and needs no service for it', async () => {
    const config = fileOf(JSON.stringify({ columns_drop: ['memo', 'phone'] }));
    const { out, err } = await run([fileOf(EXPORT), '--config', config, '--json']);
    expect(JSON.parse(out.join('')).columns.map(({ source }: { source: string }) => source)).not.toContain('memo');
    expect(err).toContain('lacks columns of columns_drop and columns_hash');
    expect(err).toContain('phone');
  });

  it('refuses what is no CSV file, and leaves nothing behind', async () => {
    mkdirSync(join(dir, 'folder'));
    const otherEncoding = fileOf(Buffer.from('\xb0\xa1,b\n1,2\n', 'latin1'));
    const before = readdirSync(dir).length;
    for (const [path, sentence] of [
      [join(dir, 'folder'), 'cannot be read'],
      [join(dir, 'none.csv'), 'cannot be read'],
      [fileOf('a,b\n1\n'), 'is no whole CSV file'],
      [fileOf('a,b\r1,2\r'), 'has a CR in its header, wanted lines that end in LF or CRLF: convert it first.'],
      [otherEncoding, `${otherEncoding} has text in another encoding, wanted UTF-8: convert it first.`],
    ]) {
      expect(await run([path])).toMatchObject({ code: 2, err: expect.stringContaining(sentence) });
    }
    expect(readdirSync(dir)).toHaveLength(before + 2);
  });
});
