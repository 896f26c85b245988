import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { literal } from '../../../src/cells/types/sql.ts';
import { copyColumns } from '../../../src/storage/partial-copy.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

const BLOCK = 512;

/** A file that is read in pieces, as in a bucket. */
function remoteOf(file: string) {
  const ranges: [number, number][] = [];
  const content = readFileSync(file);
  const read = async (from: number, to: number) => {
    ranges.push([from, to]);
    return content.subarray(from, to);
  };
  return { ranges, read };
}

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

describe('a download of some columns of a file', () => {
  it('reads like the file itself, with a fraction of its bytes, in a few requests', async () => {
    const root = join(fixture.dir, 'store');
    mkdirSync(root);
    const file = join(root, 'x.parquet');
    await query(
      ':memory:',
      `COPY (SELECT md5(i::VARCHAR) AS a, 'k' || i AS _key, md5((i * 7)::VARCHAR) AS b, i AS n FROM range(150000) t(i))
      TO ${literal(file)} (FORMAT parquet, ROW_GROUP_SIZE 61440)`,
    );
    const { size } = statSync(file);
    expect(size).toBeGreaterThan(4_000_000);
    const remote = remoteOf(file);
    const copy = join(fixture.dir, 'copy');
    await copyColumns(remote.read, { bytes: size, columns: new Set(['_key', 'n', 'not there']) }, copy);
    const sql = (path: string) =>
      query(
        ':memory:',
        `SELECT count(*)::INT AS c, sum(n)::VARCHAR AS s, md5(string_agg(_key ORDER BY _key)) AS k
      FROM read_parquet(${literal(path)})`,
      );
    expect(await sql(copy)).toEqual(await sql(file));
    expect(remote.ranges.reduce((sum, [from, to]) => sum + to - from, 0)).toBeLessThan(size / 2);
    expect(remote.ranges.length).toBeLessThan(12);
    expect(statSync(copy).size).toBe(size);
    expect(statSync(copy).blocks * BLOCK).toBeLessThan(size * 0.6);
  });

  it('is made of requests of sensible number and size', async () => {
    const root = join(fixture.dir, 'store');
    mkdirSync(root);
    const file = join(root, 'x.parquet');
    await query(
      ':memory:',
      `COPY (SELECT md5(i::VARCHAR) || md5((-i)::VARCHAR) AS a, i % 2 AS n FROM range(330000) t(i))
      TO ${literal(file)} (FORMAT parquet, ROW_GROUP_SIZE 61440, COMPRESSION uncompressed)`,
    );
    const { size } = statSync(file);
    const remote = remoteOf(file);
    const copy = join(fixture.dir, 'copy');
    await copyColumns(remote.read, { bytes: size, columns: new Set(['a']) }, copy);
    // The footer, then what lies together, in pieces.
    const [footer, ...pieces] = remote.ranges;
    expect(footer).toEqual([size - 128 * 1024, size]);
    expect(pieces).toHaveLength(2);
    const [[from, middle], [next, to]] = pieces;
    expect([middle - from, next, to <= size]).toEqual([16 * 1024 * 1024, middle, true]);
    expect(from).toBeLessThan(1_000);
    const sql = (path: string) =>
      query(':memory:', `SELECT sum(hash(a))::VARCHAR AS a FROM read_parquet(${literal(path)})`);
    expect(await sql(copy)).toEqual(await sql(file));
    expect(statSync(copy).mode & 0o777).toBe(0o600);
  });
});
