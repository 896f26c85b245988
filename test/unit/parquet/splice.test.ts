import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { splice } from '../../../src/sinks/parquet/splice.ts';
import { readStruct, type Thrift, writeStruct } from '../../../src/sinks/parquet/thrift.ts';
import { literal } from '../../../src/types/sql.ts';
import fc from '../../support/property.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-splice-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const COLUMNS = `i, 'id-' || i AS id, CASE WHEN i % 3 = 0 THEN 'few-' || i % 4 END AS few, i / 8 AS d, i % 2 = 0 AS b,
  DATE '2026-01-01' + i::INT AS day, TIMESTAMP '2026-01-01' + to_seconds(i) AS at, ['a', NULL, i::VARCHAR] AS list,
  [i, -i] AS longs, NULL::VARCHAR AS nothing`;

describe('parts made one file', () => {
  it('have every row, in order, with statistics and filters that still find them', async () => {
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
    try {
      const bounds = [0, 1, 5_000, 5_000, 23_000];
      const parts: string[] = [];
      for (let part = 1; part < bounds.length; part++) {
        const path = join(dir, `part-${part}`);
        await connection.run(
          `COPY (SELECT ${COLUMNS} FROM range(${bounds[part - 1]}, ${bounds[part]}) t(i)) TO ${literal(path)}
          (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 4096, KV_METADATA {k: 'v'})`,
        );
        parts.push(path);
      }
      const whole = join(dir, 'whole.parquet');
      await splice(parts, whole);
      const order = 'ORDER BY file_row_number';
      const all = `SELECT * EXCLUDE (file_row_number) FROM read_parquet(${literal(whole)}, file_row_number = true) ${order}`;
      expect(await rows(all)).toEqual(await rows(`SELECT ${COLUMNS} FROM range(23000) t(i)`));
      expect(await rows(`SELECT id FROM ${literal(whole)} WHERE few = 'few-3' AND i = 15_003`)).toEqual([
        { id: 'id-15003' },
      ]);
      const groups = await rows(
        `SELECT DISTINCT row_group_id AS g, row_group_num_rows AS n FROM parquet_metadata(${literal(whole)}) ORDER BY g`,
      );
      expect(groups.map(({ g }) => Number(g))).toEqual(groups.map((_, i) => i));
      expect(groups.reduce((sum, { n }) => sum + Number(n), 0)).toBe(23_000);
      const [first] = await rows(`SELECT value::VARCHAR AS v FROM parquet_kv_metadata(${literal(whole)})`);
      expect(first).toEqual({ v: 'v' });
      const read = await parquetReadObjects({ file: await asyncBufferFromFile(whole), compressors, rowStart: 22_999 });
      expect(read).toMatchObject([{ id: 'id-22999', list: ['a', null, '22999'], b: false }]);
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
  });

  it('are refused when one is none', async () => {
    const bad = join(dir, 'bad');
    writeFileSync(bad, 'PAR1 is how it begins and not how it ends');
    await expect(splice([bad], join(dir, 'out-1'))).rejects.toThrow(RangeError);
    writeFileSync(bad, readFileSync(bad, 'utf8').slice(0, 3));
    await expect(splice([bad], join(dir, 'out-2'))).rejects.toThrow();
  });
});

describe('a Thrift struct', () => {
  const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const bytes = fc.uint8Array({ maxLength: 300 });
  const { value } = fc.letrec<{ value: Thrift }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<Thrift>({ type: 1 }, { type: 2 }),
      fc.record({ type: fc.constantFrom(5 as const, 6 as const), value: long }),
      fc.record({ type: fc.constant(8 as const), value: bytes }),
      fc.record({ type: fc.constant(7 as const), value: fc.uint8Array({ minLength: 8, maxLength: 8 }) }),
      fc.array(long, { maxLength: 20 }).map<Thrift>((list) => ({
        type: 9,
        of: 6,
        items: list.map((item) => ({ type: 6, value: item })),
      })),
      fc
        .uniqueArray(fc.integer({ min: 1, max: 400 }), { maxLength: 4 })
        .chain((ids) => fc.tuple(...ids.sort((a, b) => a - b).map((id) => fc.tuple(fc.constant(id), tie('value')))))
        .map<Thrift>((fields) => ({ type: 12, fields: new Map(fields) })),
    ),
  }));

  it('is the same after it was written and read', () => {
    fc.assert(
      fc.property(value, (field) => {
        const struct = new Map([[3, field]]);
        const read = readStruct(writeStruct(struct));
        expect(writeStruct(read)).toEqual(writeStruct(struct));
        expect(read).toEqual(struct);
      }),
    );
  });

  it('that is cut is refused', () => {
    const whole = writeStruct(new Map([[1, { type: 8, value: new Uint8Array(20) }]]));
    for (let length = 0; length < whole.length; length++) {
      expect(() => readStruct(whole.subarray(0, length))).toThrow(RangeError);
    }
  });
});
