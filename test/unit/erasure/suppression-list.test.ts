import fs, { chownSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { SuppressionList } from '../../../src/erasure/suppression-list.ts';
import { expectMode } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { withCall } from '../../support/system-calls.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = newFolder();
  file = join(folder, 'list.jsonl');
});

const KEY = new Secret('a suppression key of 32 characters');
const HASH_KEY = new Secret('a hash key of at least 32 characters');
/** The list of a configuration; that of `file` unless it says otherwise. */
const listOf = (config: object = {}) => {
  const list = SuppressionList.of({ suppressionFile: file, suppressionKey: KEY, ...config });
  if (list === undefined) throw new Error('no list');
  return list;
};
const add = (...people: readonly string[]) => listOf().add(people, { clock: systemClock });
const load = (more: object = {}) => listOf(more).readFilter({ hashKey: undefined, ...more });
const drops = (list: ReturnType<typeof load>, id: string) => list.has(Buffer.from(id));

describe('a suppression list', () => {
  it('names nobody, and keeps out people by their unified id', async () => {
    await add('누구', 'null');
    const list = load();
    expect([drops(list, '누구'), drops(list, 'null'), drops(list, 'A-1')]).toEqual([true, false, false]);
    expect(list.length).toBe(1);
    expect(readFileSync(file, 'utf8')).not.toMatch(/누구/);
    expectMode(file, 0o600);
  });

  it.runIf(process.getuid?.() === 0)('written by root belongs to the owner of its folder', async () => {
    chownSync(folder, 1234, 1235);
    await add('a');
    expect(statSync(file)).toMatchObject({ uid: 1234, gid: 1235 });
  });

  it('holds everybody when several purges append at once, each person once', async () => {
    const people = Array.from({ length: 8 }, (_, i) => `p${i % 6}`);
    await Promise.all(people.map((person) => add(person)));
    expect(load().length).toBe(6);
  });

  it('gets nobody from a purge whose lock another purge has taken over', async () => {
    await add('a');
    const open = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (all[0] === file) writeFileSync(`${file}.lock`, '{"token":"of another purge"}');
      return real(...all);
    };
    await expect(withCall(fs.promises, 'open', open, () => add('b'))).rejects.toThrow('has taken over');
    expect(['a', 'b'].map((id) => drops(load(), id))).toEqual([true, false]);
  });

  it('loses nobody when a crash has cut its last line, or a copy its last line end', async () => {
    await add('a', 'b');
    truncateSync(file, statSync(file).size - 30);
    expect(() => load()).toThrow(/Line 3 .* is not/);
    // So a purge can be planned, which removes the cut line.
    expect(listOf().readLength()).toBe(1);
    await add('c');
    expect(['a', 'b', 'c'].map((id) => drops(load(), id))).toEqual([true, false, true]);
    writeFileSync(file, readFileSync(file, 'utf8').trimEnd());
    expect(listOf().readLength()).toBe(2);
    await add('d');
    expect(['c', 'd'].map((id) => drops(load(), id))).toEqual([true, true]);
  });

  it('is refused under another key, if it is not there, or if it is another file', async () => {
    expect(() => load()).toThrow(/cannot be read: .* make an empty file/);
    await add('a');
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.slice(text.indexOf('\n') + 1));
    expect(() => load()).toThrow(/Line 1 .* is not its header.* If it is lost for good, .* --new-list\.$/);
    writeFileSync(file, text);
    expect(() => load({ suppressionKey: new Secret('another key of at least 32 characters') })).toThrow('another key');
    writeFileSync(file, 'id,name\n1,x\n');
    expect(() => load()).toThrow('Line 1');
    await expect(add('b')).rejects.toMatchObject({ exitCode: 2 });
    expect(readFileSync(file, 'utf8')).toBe('id,name\n1,x\n');
  });

  it('that began as an empty line is refused under another key, too', async () => {
    writeFileSync(file, '\n');
    await add('a');
    expect(drops(load(), 'a')).toBe(true);
    expect(() => load({ suppressionKey: new Secret('another key of at least 32 characters') })).toThrow('another key');
  });

  it('knows a person by the id or its hash, and is refused without the key of that hash', async () => {
    const key = new HashKey(HASH_KEY);
    await listOf().add([key.hashOf('kim')], { clock: systemClock, hashKey: key });
    await add('lee');
    const list = load({ hashKey: HASH_KEY });
    expect([drops(list, 'kim'), drops(list, 'lee'), drops(list, 'park')]).toEqual([true, true, false]);
    const otherKey = new Secret('another hash key of at least 32 characters');
    const refusal = /by a hash of df_unified_id that this configuration does not make\..*come back/;
    for (const hashKey of [undefined, otherKey]) {
      expect(() => load({ hashKey })).toThrow(refusal);
      expect(() => listOf().readHmacs(hashKey && new HashKey(hashKey))).toThrow(refusal);
    }
  });

  it('needs no key of a hash whose plain id it has', async () => {
    const hashKey = new HashKey(HASH_KEY);
    await listOf().add([hashKey.hashOf('kim'), 'kim'], { clock: systemClock, hashKey });
    expect(drops(load(), 'kim')).toBe(true);
  });

  it('is made with its key in the folder of the ledger, by the first purge', async () => {
    const config = { suppressionFile: undefined, suppressionKey: undefined, ledgerDir: join(folder, 'ledger') };
    expect(load(config).length).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    await listOf(config).add(['kim'], { clock: systemClock });
    expect([load(config).length, drops(load(config), 'kim')]).toEqual([1, true]);
    for (const name of ['suppressed.jsonl', 'suppressed.key']) expectMode(join(folder, 'ledger', name), 0o600);
    rmSync(join(folder, 'ledger/suppressed.key'));
    expect(() => load(config)).toThrow(/has lost its key.*forget --suppressed --new-list/);
    expect(SuppressionList.of({ ...config, ledgerDir: undefined })).toBeUndefined();
  });
});
