import { createRequire } from 'node:module';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { ParquetReader } from 'parquetjs-lite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../../src/base/version.ts';
import { literal } from '../../../src/cells/types/sql.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { compactParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';
import { query } from '../../support/targets/query.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const at = (time: string, correction = time) => ({ df_server_datetime: time, df_correction_datetime: correction });

describe('every Parquet file', () => {
  it('has the same columns after one was added and another widened', async () => {
    const day = (n: number, more: Cells) =>
      fixture.window(`2026-01-0${n}`, csvOf([{ id: `r${n}`, ...at(`2026-01-0${n} 10:00:00.000`), ...more }]));
    await fixture.store([
      day(1, { n: '1', b: 'TRUE' }),
      day(2, { n: '2.5', b: 'TRUE' }),
      day(3, { n: 'x', late: '7' }),
    ]);
    const files = fixture.files().filter((file) => file.endsWith('.parquet'));
    const shapes = new Set<string>();
    for (const file of files) {
      shapes.add(
        JSON.stringify(await query(':memory:', `DESCRIBE SELECT * FROM ${literal(join(fixture.root, file))}`)),
      );
    }
    expect([files.length, shapes.size]).toEqual([3, 1]);
    expect(await fixture.read('SELECT _key, n, b, late FROM events ORDER BY _key')).toEqual([
      { _key: 'r1', n: '1', b: true, late: null },
      { _key: 'r2', n: '2.5', b: true, late: null },
      { _key: 'r3', n: 'x', b: null, late: '7' },
    ]);
    expect(fixture.log.filter(({ event }) => event === 'schema.changed').map(({ message }) => message)).toEqual([
      'column n changes from long to double: first such cell 9.9',
      'column n changes from double to string: first such cell a',
    ]);
  });

  it('names the version that wrote it, and no data', async () => {
    await fixture.store([
      fixture.window('2026-01-01', csvOf([{ id: 'a', df_items_k: '1', ...at('2026-01-01 10:00:00.000') }])),
    ]);
    const file = await asyncBufferFromFile(join(fixture.root, 'events/event_date=2026-01-01/data_0.parquet'));
    const { key_value_metadata: pairs = [] } = await parquetMetadataAsync(file);
    expect(pairs).toEqual([{ key: 'dfinery.version', value: VERSION }]);
  });

  it('has, once compacted, row groups that a filter on the event name can skip', async () => {
    const rows = Array.from({ length: 320_000 }, (_, i) => {
      const time = `${String((i * 7) % 24).padStart(2, '0')}:${String(i % 60).padStart(2, '0')}:00.000`;
      return { id: `r${i}`, df_event_name: `e${(i * 11) % 10}`, ...at(`2026-01-01 ${time}`) };
    });
    await fixture.store([fixture.window('2026-01-01', csvOf(rows))]);
    await compactParquet(fixture.folderOptions);
    const groups = await query(
      ':memory:',
      `SELECT row_group_id AS g, path_in_schema AS c, stats_min_value AS lo, stats_max_value AS hi
      FROM parquet_metadata(${literal(join(fixture.root, 'events/event_date=2026-01-01/data_0.parquet'))})`,
    );
    const readBy = (column: string, value: string) =>
      groups.filter(({ c, lo, hi }) => c === column && String(lo) <= value && value <= String(hi)).length;
    const all = groups.filter(({ c }) => c === '_key').length;
    expect(all).toBeGreaterThanOrEqual(5);
    const names = Array.from({ length: 10 }, (_, i) => readBy('df_event_name', `e${i}`));
    expect(names.reduce((sum, n) => sum + n, 0) / 10).toBeLessThanOrEqual(all * 0.3);
  });
});

describe('independent readers of the Parquet files', () => {
  const CSV = csvOf([
    {
      id: 'a',
      n: '9007199254740993',
      x: '1.5',
      b: 'FALSE',
      d: '2026-01-01',
      l: '["p","안녕"]',
      m: '[1,2]',
      ...at('2026.1.1 9:05'),
    },
    { id: 'b', memo: 'two\nlines, "quoted"', l: 'null', ...at('2026-01-01 10:00:00.123') },
  ]);
  const path = () => join(fixture.root, 'events/event_date=2026-01-01/data_0.parquet');

  it('find every value with hyparquet', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path()), compressors });
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatchObject({
      _key: 'a',
      n: 9007199254740993n,
      x: 1.5,
      b: false,
      l: ['p', '안녕'],
      m: [1n, 2n],
      df_server_datetime: new Date('2026-01-01T09:05:00.000Z'),
    });
    expect(rows[1]).toMatchObject({ _key: 'b', memo: 'two\nlines, "quoted"', n: null });
  });

  it('find every value with parquetjs-lite given zstd, except microseconds', async () => {
    const { PARQUET_COMPRESSION_METHODS: methods } = createRequire(import.meta.url)('parquetjs-lite/lib/compression');
    methods.ZSTD = { inflate: (bytes: Uint8Array) => Buffer.from(compressors.ZSTD?.(bytes, 0) ?? []) };
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const reader = await ParquetReader.openFile(path());
    const cursor = reader.getCursor([['_key'], ['x'], ['b'], ['memo']]);
    const rows = [await cursor.next(), await cursor.next(), await cursor.next()];
    await reader.close();
    expect(rows).toEqual([{ _key: 'a', x: 1.5, b: false }, { _key: 'b', memo: 'two\nlines, "quoted"' }, null]);
  });
});
