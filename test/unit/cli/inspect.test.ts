import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { widthOf } from '../../../src/cli/table.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { csvOf } from '../../support/targets/csv.ts';

const dir = mkdtempSync(join(tmpdir(), 'inspect-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let files = 0;
function fileOf(content: string | Uint8Array): string {
  const path = join(dir, `file-${++files}.csv`);
  writeFileSync(path, content);
  return path;
}

async function run(argv: readonly string[], columns = 80) {
  const { code, stdout, stderr } = await runHere(['inspect', ...argv], { columns });
  return { code, out: stdout.split('\n').slice(0, -1), err: stderr.trimEnd() };
}

async function json(path: string, ...more: string[]) {
  const { out, code } = await run([path, '--json', ...more]);
  expect(code).toBe(0);
  const result = JSON.parse(out.join(''));
  const columns = new Map<string, Record<string, unknown>>(
    result.columns.map((column: { source: string }) => [column.source, column]),
  );
  return { result, column: (name: string) => columns.get(name) };
}

const EXPORT = csvOf([
  { id: 'e:1', day: '2026-01-03', n: '10', x: '1.50', ok: 'TRUE', tags: '["a","b"]', memo: 'null', zip: '007' },
  { id: 'e:2', day: '2026-01-01', n: '9', x: '-2', ok: 'FALSE', tags: 'null', memo: '안녕, "너"', zip: '010' },
  { id: 'f', n: '9', df_discount: '2.5', df_items_k: 'v', df_items_df_price: 'free' },
  { id: 'g', n: '9', blank: '', nulls: 'null' },
]);

describe('inspect', () => {
  it('prints group, type, values and fill of every column', async () => {
    const { result, column } = await json(fileOf(EXPORT));
    expect(result).toMatchObject({ v: 1, rows: 4, bytes: Buffer.byteLength(EXPORT), missing_columns: [] });
    expect(column('n')).toMatchObject({
      group: 'custom',
      type: 'long',
      filled: 4,
      fill_rate: 1,
      distinct: 2,
      minimum: '9',
      maximum: '10',
      examples: ['9', '10'],
      rescued: 0,
    });
    expect(column('x')).toMatchObject({ type: 'double', filled: 2, fill_rate: 0.5, minimum: '-2.0', maximum: '1.5' });
    expect(column('day')).toMatchObject({ type: 'date', minimum: '2026-01-01', maximum: '2026-01-03' });
    expect(column('ok')).toMatchObject({ type: 'boolean', minimum: 'FALSE', maximum: 'TRUE' });
    expect(column('tags')).toMatchObject({ type: 'string[]', filled: 1, minimum: null, examples: ['["a","b"]'] });
    expect(column('memo')).toMatchObject({ type: 'string', filled: 2, distinct: 2 });
    expect(column('zip')).toMatchObject({ type: 'string', minimum: '007', maximum: '010' });
    expect(column('blank')).toMatchObject({ type: null, filled: 0, examples: [] });
    expect(column('nulls')).toMatchObject({ type: null, filled: 0, examples: [] });
    expect(column('df_items_k')).toMatchObject({ group: 'custom_item' });
    expect(column('df_event_name')).toMatchObject({ group: 'system', type: 'string', distinct: 1 });
  });

  it.each(['text', 'json'])(
    'prints names and values with escapes, one line each, beside a log as %s',
    async (format) => {
      const evil = 'x\u001b[2J\n  forged';
      const path = fileOf(
        csvOf([
          { id: 'e:1', [evil]: 'v\u001b]0;t\u0007\nnext' },
          { id: 'e:2', [`${evil}2`]: '' },
        ]),
      );
      const schema = fileOf(JSON.stringify({ v: 1, columns: [{ source: evil, group: 'custom', type: 'long' }] }));
      const { out, err } = await run([path, '--schema', schema, '--log-format', format], 200);
      expect(`${out.join('')}${err}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
      expect(out.join('\n')).toContain('x\\u001b[2J\\u000a  forged');
      expect(out.join('\n')).toContain('v\\u001b]0;t\\u0007\\u000anext');
      expect(out.filter((line) => line.startsWith('  forged'))).toEqual([]);
      const { column } = await json(path);
      expect(column(evil)).toMatchObject({ examples: ['v\u001b]0;t\u0007\nnext'] });
    },
  );

  it('counts the cells that a declared type and a pinned schema would rescue', async () => {
    const path = fileOf(EXPORT);
    const declared = await json(path);
    expect(declared.result.rescued_cells).toBe(1);
    expect(declared.column('df_items_df_price')).toMatchObject({
      type: 'double',
      filled: 1,
      rescued: 1,
      minimum: null,
    });
    const schema = join(dir, 'schema.json');
    const columns = [
      { source: 'x', group: 'custom', type: 'long' },
      { source: 'memo', group: 'custom', type: 'long' },
      { source: 'zip', group: 'custom', type: 'string' },
    ];
    writeFileSync(schema, JSON.stringify({ v: 1, columns }));
    const pinned = await json(path, '--schema', schema);
    expect(pinned.column('x')).toMatchObject({ type: 'long', filled: 2, rescued: 1, minimum: '-2', maximum: '-2' });
    expect(pinned.column('memo')).toMatchObject({ type: 'long', filled: 1, rescued: 1, distinct: 0 });
    expect(pinned.column('zip')).toMatchObject({ type: 'string', rescued: 0 });
    expect(pinned.result.rescued_cells).toBe(3);
  });

  it('pins the first of two columns of one name, and the event name by either of its names', async () => {
    const path = fileOf('df_event_detail_log_id,event_name,x,x\na,7,1,1\nb,8,,2\n');
    const schema = join(dir, 'names.json');
    const pin = async (...columns: { source: string; group: string; type: string }[]) => {
      writeFileSync(schema, JSON.stringify({ v: 1, columns }));
      const { result } = await json(path, '--schema', schema);
      return result.columns.map(({ type, filled }: { type: string; filled: number }) => [type, filled]);
    };
    expect(await pin({ source: 'x', group: 'custom', type: 'double' })).toEqual([
      ['string', 2],
      ['string', 2],
      ['double', 1],
      ['long', 2],
    ]);
    for (const source of ['event_name', 'df_event_name']) {
      const found = await pin({ source, group: 'system', type: 'long' });
      expect(found[1], source).toEqual(['long', 2]);
    }
  });

  it('prints the three most frequent cells, truncated to 200 characters, and no null that is a text', async () => {
    const long = 'x'.repeat(300);
    const cells = [long, long, long, 'b', 'b', 'c', 'c', 'd'];
    const numbers = ['null', 'null', 'null', '1', '1', '2', '3', 'null'];
    const { column } = await json(fileOf(csvOf(cells.map((s, i) => ({ id: `e${i}`, s, n: numbers[i] })))));
    expect(column('s')).toMatchObject({ filled: 8, maximum: 'x'.repeat(200), minimum: 'b' });
    expect(column('s')?.examples).toHaveLength(3);
    expect(column('s')?.examples).toEqual(expect.arrayContaining(['x'.repeat(200), 'b', 'c']));
    expect(column('n')).toMatchObject({ type: 'long', filled: 4, distinct: 3, minimum: '1', maximum: '3' });
    expect(column('n')?.examples).toHaveLength(3);
    expect(column('n')?.examples).toEqual(expect.arrayContaining(['1', '2', '3']));
  });

  it('counts the ids of a file: none, distinct ones, repeated ones', async () => {
    const ids = async (csv: string) => {
      const { result } = await json(fileOf(csv));
      return [result.rows, result.repeated_ids, result.rows_without_id];
    };
    expect(await ids('a,b\n1,2\n3,4\n')).toEqual([2, 0, 2]);
    expect(await ids('df_event_detail_log_id\na\nb\n')).toEqual([2, 0, 0]);
    expect(await ids('df_event_detail_log_id,x\na,1\nb,1\na,1\na,1\n,1\n')).toEqual([5, 2, 1]);
  });

  it('accepts datetimes with a zone when a timezone is configured, by its name', async () => {
    const path = fileOf(csvOf([{ id: 'a', at: '2026-01-02T03:04:05Z' }]));
    expect((await json(path)).column('at')).toMatchObject({ type: 'string' });
    const zoned = (await json(path, '--timezone', 'Asia/Seoul')).column('at');
    expect(zoned).toMatchObject({ type: 'datetime', minimum: '2026-01-02 12:04:05.000' });
    for (const name of ['Mars/Base', '+09:00', '']) {
      expect(await run([path, '--timezone', name])).toMatchObject({ code: 2, out: [] });
    }
  });

  it('reports repeated or missing ids, invalid UTF-8 and missing system columns', async () => {
    const body = Buffer.from('df_event_detail_log_id,v\na,1\na,\xff2\n,\n', 'latin1');
    const path = fileOf(body);
    const { result } = await json(path);
    expect(result).toMatchObject({
      repeated_ids: 1,
      rows_without_id: 1,
      final_newline: true,
      invalid_utf8: { cells: 1, first: { row: 3, column: 'v' } },
    });
    const { out, err, code } = await run([path]);
    expect(code).toBe(0);
    expect(err).toMatch(/lacks columns that every export has: .*df_event_log_id/);
    expect(out.join('\n')).toMatch(
      /1 row with an id that an earlier row has[\s\S]*1 row without an id[\s\S]*row 3, column v/,
    );
    expect((await json(fileOf('a,b\n1,2'))).result.final_newline).toBe(false);
  });

  it('names row and byte of invalid CSV, and exits with 2', async () => {
    const { code, err, out } = await run([fileOf('a,b\n1,2\n3\n4,5\n')]);
    expect([code, out]).toEqual([2, []]);
    expect(err).toMatch(/Row 3 of the export \(byte 8\) has too few cells: expected 2 cells, found 1 cells\.$/);
    expect((await run([fileOf('')])).code).toBe(2);
    expect((await run([join(dir, 'nowhere.csv')])).err).toMatch(/cannot be read: ENOENT/);
    expect((await run([dir])).code).toBe(2);
  });

  it('leaves no file in the temporary folder', async () => {
    // One of its own: others on this machine may inspect as well.
    const own = join(dir, 'own');
    mkdirSync(own);
    vi.stubEnv('TMPDIR', own);
    try {
      expect(tmpdir()).toBe(own);
      await run([fileOf(EXPORT)]);
      await run([fileOf('a,b\n1\n')]);
      expect(readdirSync(own)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('fits the width of the terminal, and groups the columns', async () => {
    const long = { [`long name ${'한글'.repeat(30)}`]: 'x'.repeat(300), line: 'one\ntwo\tthree' };
    const empty = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`empty_${i}`, '']));
    const path = fileOf(csvOf([{ id: 'e:1', ...long, ...empty, at: '2026.1.2 3:04' }, { id: 'e:2' }]));
    for (const columns of [80, 160]) {
      const { out } = await run([path], columns);
      const table = out.slice(1, out.indexOf('', 2));
      expect(Math.max(...table.map(widthOf))).toBeLessThanOrEqual(columns);
      expect(out).toContain('  System');
      expect(out).toContain('  Custom');
      expect(out.join('\n')).toMatch(/Without a value \(401 columns\)[\s\S]*and \d+ more/);
      expect(out.length).toBeLessThan(40);
    }
    const { out } = await run([path], 160);
    expect(out.join('\n')).toMatch(/distinct ≈ +values/);
    expect(out.find((line) => line.startsWith('    line'))).toContain(String.raw`one\u000atwo\u0009three`);
  });

  it('prints a file with a header alone, and one with more columns than one query measures', async () => {
    expect((await run([fileOf('a,b\n')])).out).toEqual([
      expect.stringContaining('0 rows, 2 columns'),
      '',
      'Without a value (2 columns): a, b.',
    ]);
    const names = Array.from({ length: 1_200 }, (_, i) => `c${i}`);
    const { column } = await json(fileOf(`${names.join(',')}\n${names.map((_, i) => i).join(',')}\n`));
    expect(['c0', 'c499', 'c500', 'c1199'].map((name) => column(name)?.maximum)).toEqual(['0', '499', '500', '1199']);
  });
});
