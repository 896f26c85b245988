import { createHmac } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import lineSchema from '../../../schemas/ledger-line.json' with { type: 'json' };
import verdictSchema from '../../../schemas/ledger-verdict.json' with { type: 'json' };
import proofSchema from '../../../schemas/proof.json' with { type: 'json' };
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { LedgerLock } from '../../../src/deletion/ledger/lock.ts';
import { proveErasure } from '../../../src/deletion/ledger/proof.ts';
import { verifyLedger } from '../../../src/deletion/ledger/verify.ts';
import { InputFiles, type Json } from '../../support/airbyte.ts';
import {
  type Answer,
  code,
  type DeletionServer,
  Folders,
  json,
  quickClock,
  record,
  SUCCESS,
  startDeletionServer,
  state,
  write,
} from '../../support/deletions.ts';
import { DEAD_PID, holderText } from '../../support/holder.ts';

let server: DeletionServer;
let folders: Folders;
let files: InputFiles;
let answer: Answer;
const ajv = new Ajv({ strict: false, formats: { 'date-time': true } });
const ANOTHER = 'another-key-of-32-characters-or-so';
const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 21);

beforeEach(async () => {
  answer = (_d, response) => json(response, SUCCESS);
  server = await startDeletionServer((...all) => answer(...all));
  folders = new Folders();
  files = new InputFiles();
});

afterEach(async () => {
  await server.close();
  folders.close();
  files.close();
});

const go = (ids: readonly string[], more: Json = {}, now = NOW) =>
  write({
    files,
    clock: quickClock(now),
    config: {
      base_url: server.url,
      service_id: 's',
      import_token: 'tok-1234',
      dry_run: false,
      ledger_dir: folders.ledger,
      ...more,
    },
    input: [...ids.map((id) => record(id)), state(1)],
  });
const pathOf = (index: number) => join(folders.ledger, folders.ledgerFiles()[index]);
const prove = (id: string, folder = folders.ledger) =>
  proveErasure(id, { folder, key: undefined, service: { baseUrl: server.url, serviceId: 's' } });
const verify = (head?: string) => verifyLedger(folders.ledger, undefined, { head });

/** Makes the last run look as if it had been killed: its closing line, and `more` bytes, are gone. */
function cutShort(more = 0): void {
  const path = pathOf(folders.ledgerFiles().length - 1);
  const text = readFileSync(path, 'utf8');
  truncateSync(path, text.lastIndexOf('\n', text.length - 2) + 1 - more);
}

describe('a ledger', () => {
  it('holds lines that keep to their schema, under a key of mode 0600', async () => {
    await go(['a', 'b']);
    const valid = ajv.compile(lineSchema);
    for (const line of folders.ledgerLines()) expect(valid(line), JSON.stringify(valid.errors)).toBe(true);
    expect(ajv.validate(verdictSchema, await verify())).toBe(true);
  });

  it('shows every edit of one byte, wherever it is', async () => {
    await go(['a']);
    const whole = readFileSync(pathOf(0));
    expect((await verify()).ok).toBe(true);
    for (let at = 0; at < whole.length - 1; at += 23) {
      const edited = Buffer.from(whole);
      edited[at] ^= 1;
      writeFileSync(pathOf(0), edited);
      expect((await verify()).ok, `byte ${at}`).toBe(false);
    }
  });

  it.each<[string, (lines: string[]) => string[]]>([
    ['a line taken out', (lines) => lines.toSpliced(1, 1)],
    ['two lines exchanged', (lines) => [lines[0], lines[2], lines[1], ...lines.slice(3)]],
    ['a line repeated', (lines) => [...lines.slice(0, 2), ...lines.slice(1)]],
    ['a first line taken out', (lines) => lines.slice(1)],
    ['a line of our own', (lines) => [...lines, '{"v":1,"kind":"close"}']],
  ])('shows %s', async (_name, edit) => {
    await go(['a', 'b']);
    const lines = readFileSync(pathOf(0), 'utf8').trimEnd().split('\n');
    writeFileSync(pathOf(0), `${edit(lines).join('\n')}\n`);
    const verdict = await verify();
    expect(verdict.ok).toBe(false);
    expect(verdict.problems[0]).toContain('line');
  });

  it('is one chain over its files: a file taken out or exchanged shows', async () => {
    await go(['a']);
    const { head } = await verify();
    await go(['b']);
    await go(['c']);
    expect(await verify()).toMatchObject({ ok: true });
    expect(await verify(head ?? '')).toMatchObject({ ok: true });
    expect(folders.ledgerLines()[4].prev).toBe(folders.ledgerLines()[3].mac);
    rmSync(pathOf(1));
    expect((await verify()).ok).toBe(false);
  });

  it('shows that its first file is missing', async () => {
    await go(['a']);
    await go(['b']);
    rmSync(pathOf(0));
    const verdict = await verify();
    expect(verdict).toMatchObject({ ok: false, problems: [expect.stringContaining('files before it are missing')] });
  });

  it('shows what was added after a closing line, with or without a line end', async () => {
    await go(['a']);
    for (const more of ['x', 'x\n', '{"v":1,"kind":"open"']) {
      const whole = readFileSync(pathOf(0));
      writeFileSync(pathOf(0), Buffer.concat([whole, Buffer.from(more)]));
      expect(await verify(), more).toMatchObject({ ok: false, files: [{ closed: true, torn_bytes: 0 }] });
      writeFileSync(pathOf(0), whole);
    }
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('is wanted as a folder that is there, for a proof', async () => {
    await go(['a']);
    const missing = prove('a', join(folders.ledger, 'no'));
    await expect(missing).rejects.toMatchObject({ kind: 'config', message: expect.stringContaining('no ledger') });
    await expect(prove('a', pathOf(0))).rejects.toMatchObject({ kind: 'config' });
  });

  it('shows a cut tail to whoever kept the head', async () => {
    const output = await go(['a', 'b']);
    const head = /Head of the ledger: ([0-9a-f]{64})/.exec(output.text)?.[1];
    expect(await verify(head)).toMatchObject({ ok: true, head });
    cutShort();
    expect((await verify()).ok).toBe(true);
    expect((await verify(head)).ok).toBe(false);
  });

  it('is not verified under another key, nor written to', async () => {
    await go(['a']);
    expect((await verifyLedger(folders.ledger, new Secret(ANOTHER))).ok).toBe(false);
    const output = await go(['b'], { ledger_key: ANOTHER });
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error' });
    expect(server.ids()).toEqual(['a']);
  });

  it('has no key that an id can ask for: neither of its own ids nor by a label of its derivation', async () => {
    const key = 'a-ledger-key-of-32-characters-or-so';
    const ids = [
      'dfinery-elt ledger chain v1',
      ...['id', 'chain', 'list', 'key check'].map((name) => `dfinery-elt ledger ${name} v2`),
    ];
    await go([...ids, ...ids.map((id) => `${id}\u00a0`)], { ledger_key: key });
    const text = readFileSync(pathOf(0), 'utf8');
    const lines = text.trimEnd().split('\n');
    const written = new Set(
      text.match(/[0-9a-f]{64}/g)?.flatMap((hex) => [hex, Buffer.from(hex, 'hex').toString('latin1')]),
    );
    expect(written.size).toBeGreaterThan(10);
    for (const one of [...written, key]) {
      for (const secret of [Buffer.from(one, 'latin1'), Buffer.from(one, 'hex')]) {
        const [, covered = '', mac = ''] = /^(.*),"mac":"([0-9a-f]{64})"\}$/.exec(lines[1]) ?? [];
        expect(createHmac('sha256', secret).update(covered).digest('hex')).not.toBe(mac);
      }
    }
  });

  it('of the former format is not believed, and says so', async () => {
    const old = { v: 1, run: '0123456789abcdef', at: '2026-01-01T00:00:00.000Z', kind: 'open', base_url: server.url };
    const secret = 'k'.repeat(64);
    const sign = (name: string) => createHmac('sha256', secret).update(name).digest();
    const open = {
      ...old,
      service_id: 's',
      key_check: sign('dfinery-elt ledger key check v1').toString('hex').slice(0, 16),
      ids: 1,
    };
    const covered = JSON.stringify({ ...open, prev: '0'.repeat(64) }).slice(0, -1);
    const mac = createHmac('sha256', sign('dfinery-elt ledger chain v1')).update(covered).digest('hex');
    mkdirSync(folders.ledger);
    writeFileSync(join(folders.ledger, 'ledger.key'), secret, { mode: 0o600 });
    writeFileSync(join(folders.ledger, 'ledger-000001-0123456789abcdef.jsonl'), `${covered},"mac":"${mac}"}\n`);
    expect(await verify()).toMatchObject({ ok: false, problems: [expect.stringContaining('former format')] });
    expect(await prove('a')).toMatchObject({ erased: false, problems: [expect.stringContaining('former format')] });
    const output = await go(['a']);
    expect(output.errors()[0]).toMatchObject({
      failure_type: 'config_error',
      message: expect.stringContaining('former format'),
    });
    expect(server.ids()).toEqual([]);
  });

  it('wants a key of at least 32 characters, given or in its folder', async () => {
    const output = await go(['a'], { ledger_key: 'k'.repeat(31) });
    expect(output.errors()[0].message).toMatch(/ledger_key .*32/);
    await expect(verifyLedger(folders.root, new Secret('k'.repeat(31)))).rejects.toThrow(/32/);
    mkdirSync(folders.ledger);
    writeFileSync(join(folders.ledger, 'ledger.key'), 'short\n', { mode: 0o600 });
    expect((await go(['a'])).errors()[0].message).toMatch(/32/);
    expect(server.ids()).toEqual([]);
  });

  it('proves one erasure and no other', async () => {
    answer = ({ id }, response) => (id === 'no' ? code(response, '40001') : json(response, SUCCESS));
    await go(['a', 'no'], { requested_by: 'dpo' });
    const proof = await prove('a');
    expect(proof).toMatchObject({ erased: true, answers: [{ outcome: 'done', code: '20000', requested_by: 'dpo' }] });
    expect(ajv.validate(proofSchema, proof)).toBe(true);
    expect(await prove('no')).toMatchObject({
      erased: false,
      answers: [{ code: '40001' }],
    });
    expect(await prove('b')).toMatchObject({ erased: false, answers: [] });
    expect(JSON.stringify(proof)).not.toContain('"a"');
  });

  it('proves nothing once its chain is broken anywhere, nor by the file of another service', async () => {
    await go(['a']);
    await go(['b']);
    const first = pathOf(0);
    renameSync(first, join(folders.root, 'away'));
    expect(await prove('b')).toMatchObject({
      erased: false,
      answers: [],
      problems: [expect.stringContaining('missing')],
    });
    renameSync(join(folders.root, 'away'), first);
    expect(await prove('b')).toMatchObject({ erased: true, base_url: server.url, service_id: 's', problems: [] });

    const ours = join(folders.root, 'ours');
    mkdirSync(ours);
    await go(['c'], { service_id: 'other' });
    expect(await prove('c')).toMatchObject({ erased: false, answers: [], service_id: 's' });
    cpSync(join(folders.ledger, 'ledger.key'), join(ours, 'ledger.key'));
    cpSync(pathOf(0), join(ours, folders.ledgerFiles()[0]));
    cpSync(pathOf(2), join(ours, folders.ledgerFiles()[2].replace('000003', '000002')));
    expect(await prove('c', ours)).toMatchObject({
      erased: false,
      answers: [],
      problems: [expect.stringContaining('does not follow')],
    });
  });
});

describe('a run after another', () => {
  it('asks again for whoever asks again, when the run before came to its end', async () => {
    await go(['a']);
    await go(['a']);
    expect(server.ids()).toEqual(['a', 'a']);
  });

  it('goes on with one of the same list that was killed: what is proved done is skipped, the rest asked again, states exact', async () => {
    answer = ({ id }, response) => (id === 'c' ? code(response, '40201') : json(response, SUCCESS));
    await go(['a', 'b', 'c']);
    expect(folders.ledgerLines().at(-1)?.kind).not.toBe('close');
    answer = (_d, response) => json(response, SUCCESS);
    const output = await go(['b', 'c', 'a', 'b']);
    expect(server.ids()).toEqual(['a', 'b', 'c', 'c']);
    expect(output.text).toContain('"destinationStats":{"recordCount":4,"rejectedRecordCount":0}');
    const runs = folders.ledgerLines().filter(({ kind }) => kind === 'open');
    expect(runs.map(({ resumes }) => resumes)).toEqual([undefined, runs[0].run]);
    expect((await verify()).ok).toBe(true);
    await go(['a', 'b', 'c']);
    expect(server.ids()).toHaveLength(7);
  });

  it('goes on over several of the same list that were killed', async () => {
    for (const stop of ['b', 'c']) {
      answer = ({ id }, response) => (id === stop ? code(response, '40201') : json(response, SUCCESS));
      await go(['a', 'b', 'c'], { max_concurrent_requests: 1 });
    }
    answer = (_d, response) => json(response, SUCCESS);
    await go(['a', 'b', 'c']);
    expect(server.ids().filter((id) => id === 'a')).toHaveLength(1);
    expect(server.ids().filter((id) => id === 'b')).toHaveLength(2);
  });

  it.each<[string, readonly string[], number]>([
    ['of another list', ['a', 'x'], NOW],
    ['begun a day before', ['a', 'b'], NOW + 24 * HOUR],
    ['begun in what is now the future', ['a', 'b'], NOW - 25 * HOUR],
  ])(
    'never goes on with one %s: who asks again is erased again, and it is named with its date',
    async (_name, ids, now) => {
      await go(['a', 'b']);
      cutShort();
      const output = await go(ids, {}, now);
      expect(server.ids()).toEqual(['a', 'b', ...ids]);
      const { run, at } = folders.ledgerLines()[0];
      expect(output.text).toContain(`${run} of ${at}`);
      expect((await verify()).ok).toBe(true);
    },
  );

  it('goes on with one begun less than a day before', async () => {
    await go(['a', 'b']);
    cutShort();
    const output = await go(['a', 'b'], {}, NOW + 24 * HOUR - 60_000);
    expect(output.code).toBe(0);
    expect(server.ids()).toEqual(['a', 'b']);
    expect(output.text).not.toContain('never ended');
  });

  it('never goes on with one that was gone on with to its end', async () => {
    await go(['a', 'b']);
    cutShort();
    await go(['a', 'b']);
    await go(['a', 'b']);
    expect(server.ids()).toEqual(['a', 'b', 'a', 'b']);
  });

  it.each([1, 40, 200])('takes a last line torn %i bytes before its end for what it is', async (bytes) => {
    await go(['a', 'b']);
    cutShort(bytes);
    const output = await go(['a', 'b']);
    expect(output.code).toBe(0);
    expect(server.ids().filter((id) => id === 'a')).toHaveLength(1);
    expect((await verify()).ok).toBe(true);
  });

  it('never goes on with a run of another service', async () => {
    await go(['a']);
    cutShort();
    await go(['a'], { service_id: 'other' });
    expect(server.ids()).toEqual(['a', 'a']);
    await go(['a']);
    expect(server.ids()).toEqual(['a', 'a']);
  });

  it('refuses to write after a ledger that was changed', async () => {
    await go(['a', 'b']);
    const text = readFileSync(pathOf(0), 'utf8');
    writeFileSync(pathOf(0), text.replace('"attempt":1', '"attempt":2'));
    const output = await go(['c']);
    expect(output.code).not.toBe(0);
    expect(server.ids()).toEqual(['a', 'b']);
  });
});

describe('the lock', () => {
  it('lets one run in, and names the other', async () => {
    await go(['a']);
    const lock = await LedgerLock.take(folders.ledger, systemClock);
    const output = await go(['b']);
    expect(output.errors()[0]).toMatchObject({ failure_type: 'transient_error' });
    expect(output.errors()[0].message).toContain(String(process.pid));
    lock.release();
    expect((await go(['b'])).code).toBe(0);
  });

  it('is taken over from a dead process', async () => {
    await go(['a']);
    writeFileSync(join(folders.ledger, 'ledger.lock'), holderText({ pid: DEAD_PID }));
    expect((await go(['b'])).code).toBe(0);
  });

  it('is taken over from another machine only after its silence', async () => {
    await go(['a']);
    const path = join(folders.ledger, 'ledger.lock');
    writeFileSync(path, holderText({ pid: 1, host: 'elsewhere' }));
    await expect(LedgerLock.take(folders.ledger, systemClock)).rejects.toThrow(/elsewhere/);
    const then = systemClock.now() / 1_000 - 600;
    utimesSync(path, then, then);
    (await LedgerLock.take(folders.ledger, systemClock)).release();
  });

  it('that another run has taken over stops the one that was silent for long, before its next request', async () => {
    await go(['a']);
    const lock = await LedgerLock.take(folders.ledger, systemClock);
    const lines: string[] = [];
    const output = lock.guarded({
      async write(given) {
        lines.push(...given);
      },
      async close() {},
    });
    await output.write(['first']);
    writeFileSync(join(folders.ledger, 'ledger.lock'), holderText());
    await expect(output.write(['second'])).rejects.toMatchObject({ kind: 'transient' });
    expect(lines).toEqual(['first']);
  });
});
