import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import {
  type Forgotten,
  requireSuppression,
  suppress,
  suppressionOf,
  suppressionToAppend,
} from '../../../src/erasure/suppression.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-suppression-'));
  file = join(folder, 'list.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

const KEY = new Secret('a suppression key of 32 characters');
const HASH_KEY = new Secret('a hash key of at least 32 characters');
const add = (...people: Forgotten[]) => suppress({ file, key: KEY }, people, { clock: systemClock });
const load = (more: object = {}) => {
  const config = { suppressionFile: file, suppressionKey: KEY, columnsHash: [], hashKey: undefined, ...more };
  const list = suppressionOf(config);
  if (list === undefined) throw new Error('no list');
  return list;
};
const drops = (list: ReturnType<typeof load>, id: string, column = 'df_unified_id') => {
  const bytes = Buffer.from(`x${id}x`);
  return list.drops(column, bytes, 1, bytes.length - 1);
};

describe('a suppression list', () => {
  it('names nobody, and keeps out people by unified id, or by external id and its column', async () => {
    await add({ text: '누구' }, { text: 'A-1', column: 'customer_id' }, { text: 'null' });
    const list = load();
    expect(list.columns).toEqual(['df_unified_id', 'customer_id']);
    expect([drops(list, '누구'), drops(list, 'A-1', 'customer_id'), drops(list, 'A-1')]).toEqual([true, true, false]);
    expect(list.version.length).toBe(2);
    expect(readFileSync(file, 'utf8')).not.toMatch(/누구|A-1/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('holds everybody when several purges append at once, each person once', async () => {
    const people = Array.from({ length: 8 }, (_, i) => ({ text: `p${i % 6}` }));
    await Promise.all(people.map((one) => add(one)));
    expect(load().version.length).toBe(6);
  });

  it('loses nobody when a crash has cut its last line, or an editor its last line end', async () => {
    await add({ text: 'a' }, { text: 'b' });
    truncateSync(file, statSync(file).size - 30);
    expect(() => load()).toThrow(/Line 3 .* is not/);
    // So a purge can be planned, which removes the cut line.
    expect(suppressionToAppend({ file, key: KEY }).entries).toHaveLength(1);
    await add({ text: 'c' });
    expect(['a', 'b', 'c'].map((id) => drops(load(), id))).toEqual([true, false, true]);
    writeFileSync(file, readFileSync(file, 'utf8').trimEnd());
    await add({ text: 'd' });
    expect(['c', 'd'].map((id) => drops(load(), id))).toEqual([true, true]);
  });

  it('is refused under another key, if it is not there, or if it is another file', async () => {
    expect(() => load()).toThrow('cannot be read');
    await add({ text: 'a' });
    expect(() => load({ suppressionKey: new Secret('another key of at least 32 characters') })).toThrow('another key');
    expect(() => load({ suppressionKey: new Secret('short') })).toThrow('shorter than 32');
    writeFileSync(file, 'id,name\n1,x\n');
    expect(() => load()).toThrow('Line 1');
    await expect(add({ text: 'b' })).rejects.toMatchObject({ exitCode: 2 });
    expect(readFileSync(file, 'utf8')).toBe('id,name\n1,x\n');
  });

  it('knows a person by the id or its hash, and is refused where the hash key is another', async () => {
    const key = new HashKey(HASH_KEY);
    await add({ text: key.hashOf('kim'), hashKey: key.check }, { text: 'lee' });
    const list = load({ columnsHash: ['df_unified_id'], hashKey: HASH_KEY });
    expect([drops(list, 'kim'), drops(list, 'lee'), drops(list, 'park')]).toEqual([true, true, false]);
    expect(() => load()).toThrow('their rows would come back');
  });

  it('must be the one that a place was purged with, or a longer one', async () => {
    const short = await add({ text: 'a' });
    const long = await add({ text: 'b' });
    const list = load();
    expect(() => requireSuppression('duckdb x', short, list)).not.toThrow();
    expect(() => requireSuppression('duckdb x', long, list)).not.toThrow();
    expect(() => requireSuppression('duckdb x', undefined, undefined)).not.toThrow();
    expect(() => requireSuppression('duckdb x', short, undefined)).toThrow(/no suppression_file is configured/);
    rmSync(file);
    await add({ text: 'a' });
    expect(() => requireSuppression('duckdb x', long, load())).toThrow(/another one, or an older copy/);
    await add({ text: 'c' });
    expect(() => requireSuppression('duckdb x', long, load())).toThrow(/another one, or an older copy/);
  });
});
