import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/sinks/storage/disk.ts';
import { copyColumns } from '../../../src/sinks/storage/partial-copy.ts';
import { literal } from '../../../src/types/sql.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

const BLOCK = 512;

/** A folder that hands out copies and pieces alone, as a bucket does. */
class Remote extends DiskStorage {
  bytes = 0;
  requests = 0;
  readonly ranges: [number, number][] = [];

  override async readRange(path: string, from: number, to: number): Promise<Buffer> {
    this.requests++;
    this.ranges.push([from, to]);
    this.bytes += to - from;
    return super.readRange(path, from, to);
  }
}

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

describe('a download of some columns of a file', () => {
  it('reads like the file itself, with a fraction of its bytes, in a few requests [R308]', async () => {
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
    const remote = new Remote(root);
    const copy = join(fixture.dir, 'copy');
    const wanted = { path: 'x.parquet', bytes: size, columns: new Set(['_key', 'n', 'not there']) };
    await copyColumns(remote, wanted, copy);
    const sql = (path: string) =>
      query(
        ':memory:',
        `SELECT count(*)::INT AS c, sum(n)::VARCHAR AS s, md5(string_agg(_key ORDER BY _key)) AS k
      FROM read_parquet(${literal(path)})`,
      );
    expect(await sql(copy)).toEqual(await sql(file));
    expect(remote.bytes).toBeLessThan(size / 2);
    expect(remote.requests).toBeLessThan(12);
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
    const remote = new Remote(root);
    const copy = join(fixture.dir, 'copy');
    await copyColumns(remote, { path: 'x.parquet', bytes: size, columns: new Set(['a']) }, copy);
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

  it('is the whole file if that is small', async () => {
    const root = join(fixture.dir, 'store');
    mkdirSync(root);
    const bytes = 2 * 1024 * 1024;
    for (const size of [bytes, bytes + 1]) writeFileSync(join(root, `${size}`), Buffer.alloc(size));
    const remote = new Remote(root);
    const wanted = (size: number) => ({ path: `${size}`, bytes: size, columns: new Set(['a']) });
    expect(await copyColumns(remote, wanted(bytes), join(fixture.dir, 'copy'))).toBe(join(root, `${bytes}`));
    expect(remote.requests).toBe(0);
    await expect(copyColumns(remote, wanted(bytes + 1), join(fixture.dir, 'copy'))).rejects.toThrow();
    expect(remote.requests).toBe(1);
  });
});
