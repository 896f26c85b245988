import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { loadSuppression, suppress, suppressionHmac } from '../../../src/erasure/suppression/list.ts';
import { Fixture, steadyRows } from '../../support/extract/extraction.ts';
import { persons } from '../../support/suppressed.ts';

const dir = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
afterAll(() => rmSync(dir, { recursive: true }));
const KEY = new Secret('a suppression key of 32 characters');
const file = (name: string, ...lines: object[]) => {
  const path = join(dir, name);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
};
const hmac = (id: string) => ({ hmac: suppressionHmac(KEY, Buffer.from(id)) });
const asks = (path: string, id: string) =>
  loadSuppression(path, KEY).isSuppressed(Buffer.from(`x${id}x`), 1, 1 + Buffer.byteLength(id));

describe('suppressed people', () => {
  let fixture: Fixture | undefined;
  afterEach(() => fixture?.close());

  it('are recognised by their HMAC', () => {
    const path = file('list', { v: 1, kind: 'suppression' }, hmac('누구'));
    expect([asks(path, '누구'), asks(path, 'other'), asks(file('empty'), 'x')]).toEqual([true, false, false]);
  });

  it('change the hash of the list', () => {
    const digest = (...ids: string[]) => loadSuppression(file('d', ...ids.map(hmac)), KEY).digest;
    expect(digest('a', 'b')).toBe(digest('b', 'a'));
    expect(digest('a')).not.toBe(digest('b'));
  });

  it.each([
    ['a line that is no HMAC', [{ hmac: 'x' }]],
    ['another version', [{ v: 2, kind: 'suppression' }]],
  ])('are refused as a list with %s', (_, lines) => {
    expect(() => loadSuppression(file('bad', ...lines), KEY)).toThrow(/Line 1/);
  });

  it.each([
    ['as an editor may leave it', ''],
    ['and spaces of whoever wrote it', ' '],
  ])('stay on the list when its last line has no line end, %s, and more are added', async (_, space) => {
    const path = join(dir, `unended${space.length}`);
    const { hmac: of } = hmac('a');
    writeFileSync(path, `${JSON.stringify(hmac('z'))}\n{"hmac":${space}"${of}"}`);
    expect(await suppress(path, persons('a', 'b'), KEY, { clock: systemClock })).toBe(1);
    expect(['z', 'a', 'b', 'c'].map((id) => asks(path, id))).toEqual([true, true, true, false]);
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(3);
  });

  it.each([1, 20, 40])('are listed after a header of which a power cut left %i bytes', async (bytes) => {
    const path = join(dir, `header-${bytes}`);
    const add = (id: string) => suppress(path, persons(id), KEY, { clock: systemClock });
    await add('first');
    const header = readFileSync(path, 'utf8').split('\n')[0];
    writeFileSync(path, header.slice(0, bytes));
    await add('a');
    expect(asks(path, 'a')).toBe(true);
    expect(readFileSync(path, 'utf8').split('\n')[0]).toBe(header);
    writeFileSync(path, `${header.slice(0, bytes - 1)}x`);
    await expect(add('b')).rejects.toMatchObject({ kind: 'config' });
  });

  it('stay on a list whose last line was truncated, as do those added then', async () => {
    const path = join(dir, 'cut');
    writeFileSync(path, `${JSON.stringify(hmac('z'))}\n${JSON.stringify(hmac('half')).slice(0, 20)}`);
    expect(await suppress(path, persons('a'), KEY, { clock: systemClock })).toBe(1);
    expect(['z', 'a', 'half'].map((id) => asks(path, id))).toEqual([true, true, false]);
  });

  it('are all listed when several purges append at once, also under another name of the file', async () => {
    const path = file('shared');
    const other = join(dir, 'link');
    symlinkSync(path, other);
    const people = Array.from({ length: 6 }, (_, i) => `p${i}`);
    const add = (id: string, i: number) =>
      suppress(i % 2 === 0 ? path : other, persons(id), KEY, { clock: systemClock });
    expect(await Promise.all(people.map(add))).toEqual(people.map(() => 1));
    expect(people.map((id) => asks(path, id))).toEqual(people.map(() => true));
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(1 + people.length);
  });

  it('cannot be listed by a hash alone when ids are plain or hashed by another key', () => {
    const [key, other] = ['a', 'b'].map((letter) => new HashKey(new Secret(letter.repeat(32))));
    const path = file('hashed', { ...hmac(key.hashOf(Buffer.from('p'))), hash_key: key.check });
    expect(loadSuppression(path, KEY, key).isSuppressed(Buffer.from('p'), 0, 1)).toBe(true);
    for (const wrong of [undefined, other])
      expect(() => loadSuppression(path, KEY, wrong)).toThrow(
        expect.objectContaining({
          message: expect.stringMatching(/Line 1 .* under another hash_key/),
          where: { file: path, row: 1 },
        }),
      );
  });

  it('need a list that exists', () => {
    expect(() => loadSuppression(join(dir, 'none'), KEY)).toThrow(/cannot be read/);
  });

  it('are never written to a spool file', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-05', '2026-03-05', 6) });
    fixture.options = { suppression: loadSuppression(file('one', hmac('u-df_login-2026-03-05-3')), KEY) };
    await fixture.run({ startDate: '2026-03-05', endDate: '2026-03-05' });
    expect(fixture.target.rows.has('df_login-2026-03-05-3')).toBe(false);
    expect(fixture.target.receipts[0]).toMatchObject({ rows: 5, suppressed: 1 });
  });

  it('are never written to one when columns before their id are dropped, or their id is hashed', async () => {
    const key = new HashKey(new Secret('a hash key of at least 32 characters'));
    const people = file('both', hmac('u-df_login-2026-03-05-3'));
    for (const edits of [columnEdits(['df_api_version'], [], undefined), columnEdits([], ['df_unified_id'], key)]) {
      fixture?.close();
      fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-05', '2026-03-05', 6) });
      fixture.options = { suppression: loadSuppression(people, KEY, key), edits };
      await fixture.run({ startDate: '2026-03-05', endDate: '2026-03-05' });
      expect(fixture.target.rows.has('df_login-2026-03-05-3')).toBe(false);
      expect(fixture.target.receipts[0]).toMatchObject({ rows: 5, suppressed: 1 });
    }
  });

  it('are not counted as missing by a re-read: a warning counts only rows that the service lacks', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-05', '2026-03-05', 6) });
    fixture.options = { suppression: loadSuppression(file('one', hmac('u-df_login-2026-03-05-3')), KEY) };
    const day = { startDate: '2026-03-05', endDate: '2026-03-05' };
    for (const [before, warnings] of [
      [6, 0],
      [7, 1],
    ] as const) {
      for await (const window of fixture.windows(day, {}, { rowsOf: () => before }))
        await fixture.target.commit(window);
      expect(fixture.events('window.fewer_rows')).toHaveLength(warnings);
    }
  });
});
