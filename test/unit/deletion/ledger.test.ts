import { createHmac } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import lineSchema from '../../../schemas/ledger-line.json' with { type: 'json' };
import verdictSchema from '../../../schemas/ledger-verdict.json' with { type: 'json' };
import proofSchema from '../../../schemas/proof.json' with { type: 'json' };
import { Secret } from '../../../src/base/secrets.ts';
import { verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { code, json, SUCCESS } from '../../support/deletion/deletions.ts';
import { LedgerRuns } from '../../support/deletion/ledger-runs.ts';

const ajv = new Ajv({ strict: false, formats: { 'date-time': true } });
const ANOTHER = 'another-key-of-32-characters-or-so';
let runs: LedgerRuns;
beforeEach(async () => {
  runs = await LedgerRuns.start();
});
afterEach(() => runs.close());

describe('a ledger', () => {
  it('holds lines that match their schema, under a key of mode 0600', async () => {
    await runs.go(['a', 'b']);
    const valid = ajv.compile(lineSchema);
    for (const line of runs.folders.ledgerLines()) expect(valid(line), JSON.stringify(valid.errors)).toBe(true);
    expect(ajv.validate(verdictSchema, await runs.verify())).toBe(true);
  });

  it('reveals every edit of one byte', async () => {
    await runs.go(['a']);
    const whole = readFileSync(runs.pathOf(0));
    expect((await runs.verify()).ok).toBe(true);
    for (let at = 0; at < whole.length - 1; at += 23) {
      const edited = Buffer.from(whole);
      edited[at] ^= 1;
      writeFileSync(runs.pathOf(0), edited);
      expect((await runs.verify()).ok, `byte ${at}`).toBe(false);
    }
  });

  it('reveals an edit that only makes its bytes invalid UTF-8', async () => {
    await runs.go(['a'], { reason: 'unknown: \ufffd' });
    const text = readFileSync(runs.pathOf(0), 'latin1');
    expect((await runs.verify()).ok).toBe(true);
    writeFileSync(runs.pathOf(0), text.replace('\xef\xbf\xbd', '\xff'), 'latin1');
    expect((await runs.verify()).problems).toEqual([expect.stringContaining('is not valid UTF-8')]);
  });

  it.each<[string, (lines: string[]) => string[]]>([
    ['a line taken out', (lines) => lines.toSpliced(1, 1)],
    ['two lines exchanged', (lines) => [lines[0], lines[2], lines[1], ...lines.slice(3)]],
    ['a line repeated', (lines) => [...lines.slice(0, 2), ...lines.slice(1)]],
    ['a first line taken out', (lines) => lines.slice(1)],
    ['a line of our own', (lines) => [...lines, '{"v":1,"kind":"close"}']],
  ])('shows %s', async (_name, edit) => {
    await runs.go(['a', 'b']);
    const lines = readFileSync(runs.pathOf(0), 'utf8').trimEnd().split('\n');
    writeFileSync(runs.pathOf(0), `${edit(lines).join('\n')}\n`);
    const verdict = await runs.verify();
    expect(verdict.ok).toBe(false);
    expect(verdict.problems[0]).toContain('line');
  });

  it('is one chain over its files: a removed or exchanged file is found', async () => {
    await runs.go(['a']);
    const { head } = await runs.verify();
    await runs.go(['b']);
    await runs.go(['c']);
    expect(await runs.verify()).toMatchObject({ ok: true });
    expect(await runs.verify(head ?? '')).toMatchObject({ ok: true });
    expect(runs.folders.ledgerLines()[4].prev).toBe(runs.folders.ledgerLines()[3].mac);
    rmSync(runs.pathOf(1));
    expect((await runs.verify()).ok).toBe(false);
  });

  it('reveals two files of one number', async () => {
    await runs.go(['a']);
    await runs.go(['b']);
    cpSync(runs.pathOf(1), runs.pathOf(1).replace(/[0-9a-f]{16}/, 'f'.repeat(16)));
    const { ok, problems } = await runs.verify();
    expect(ok).toBe(false);
    expect(problems.join()).toContain('another file has the number 2, too');
    expect(problems.join()).not.toContain('are missing');
  });

  it('reveals a missing first file', async () => {
    await runs.go(['a']);
    await runs.go(['b']);
    rmSync(runs.pathOf(0));
    const verdict = await runs.verify();
    expect(verdict).toMatchObject({ ok: false, problems: [expect.stringContaining('files before it are missing')] });
  });

  it('reveals lines added after a closing line, with or without a line end', async () => {
    await runs.go(['a']);
    for (const more of ['x', 'x\n', '{"v":1,"kind":"open"']) {
      const whole = readFileSync(runs.pathOf(0));
      writeFileSync(runs.pathOf(0), Buffer.concat([whole, Buffer.from(more)]));
      expect(await runs.verify(), more).toMatchObject({ ok: false, files: [{ closed: true, torn_bytes: 0 }] });
      writeFileSync(runs.pathOf(0), whole);
    }
    expect(await runs.verify()).toMatchObject({ ok: true });
  });

  it('must exist as a folder for a proof', async () => {
    await runs.go(['a']);
    const missing = runs.prove('a', join(runs.folders.ledger, 'no'));
    await expect(missing).rejects.toMatchObject({ kind: 'config', message: expect.stringContaining('no ledger') });
    await expect(runs.prove('a', runs.pathOf(0))).rejects.toThrow('is no folder');
  });

  it('reveals a truncated end to whoever kept the head', async () => {
    const output = await runs.go(['a', 'b']);
    const head = /Head of the ledger: ([0-9a-f]{64})/.exec(output.text)?.[1];
    expect(await runs.verify(head)).toMatchObject({ ok: true, head });
    runs.cutShort();
    expect((await runs.verify()).ok).toBe(true);
    expect((await runs.verify(head)).ok).toBe(false);
  });

  it('is neither verified nor written under another key', async () => {
    await runs.go(['a']);
    expect((await verifyLedger(runs.folders.ledger, new Secret(ANOTHER))).ok).toBe(false);
    const output = await runs.go(['b'], { ledger_key: ANOTHER });
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error' });
    expect(runs.server.ids()).toEqual(['a']);
  });

  it('has a key that no id can reproduce: neither by its hash nor by a derivation label', async () => {
    const key = 'a-ledger-key-of-32-characters-or-so';
    const ids = [
      'dfinery-elt ledger chain v1',
      ...['id', 'chain', 'list', 'key check'].map((name) => `dfinery-elt ledger ${name} v1`),
    ];
    await runs.go([...ids, ...ids.map((id) => `${id}\u00a0`)], { ledger_key: key });
    const text = readFileSync(runs.pathOf(0), 'utf8');
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

  it('is refused when its key is readable by others, missing, or a link', async () => {
    await runs.go(['a']);
    const [key, link] = [join(runs.folders.ledger, 'ledger.key'), join(runs.folders.ledger, 'ledger-000002-x.jsonl')];
    chmodSync(key, 0o644);
    expect((await runs.go(['b'])).errors()[0].message).toContain('0600');
    chmodSync(key, 0o600);
    symlinkSync(runs.pathOf(0), link);
    expect((await runs.go(['b'])).errors()[0].message).toContain('no regular file');
    rmSync(link);
    rmSync(key);
    expect((await runs.go(['b'])).errors()[0].message).toContain('lost its key');
    expect(existsSync(key)).toBe(false);
    expect(runs.server.ids()).toEqual(['a']);
  });

  it('is refused in a folder of another user, in a dry run too; a folder of root is accepted', async () => {
    mkdirSync(runs.folders.ledger, { mode: 0o755 });
    const { uid } = statSync(runs.folders.ledger);
    const user = vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
    try {
      if (uid === 0) expect((await runs.go(['a'])).errors()).toEqual([]);
      if (uid === 0) chownSync(runs.folders.ledger, 2, 2);
      for (const dry_run of [false, true]) {
        const [error] = (await runs.go(['b'], { dry_run })).errors();
        expect(error).toMatchObject({ failure_type: 'config_error', message: expect.stringContaining('another user') });
      }
    } finally {
      user.mockRestore();
    }
    expect(runs.server.ids()).not.toContain('b');
  });

  it('requires a key of at least 32 characters, given or in its folder', async () => {
    const output = await runs.go(['a'], { ledger_key: 'k'.repeat(31) });
    expect(output.errors()[0].message).toMatch(/ledger_key .*32/);
    await expect(verifyLedger(runs.folders.root, new Secret('k'.repeat(31)))).rejects.toThrow(/32/);
    mkdirSync(runs.folders.ledger);
    writeFileSync(join(runs.folders.ledger, 'ledger.key'), 'short\n', { mode: 0o600 });
    expect((await runs.go(['a'])).errors()[0].message).toMatch(/32/);
    expect(runs.server.ids()).toEqual([]);
  });

  it('proves the erasure of one id and of no other', async () => {
    runs.answer = ({ id }, response) => (id === 'no' ? code(response, '40001') : json(response, SUCCESS));
    await runs.go(['a', 'no'], { requested_by: 'dpo' });
    const proof = await runs.prove('a');
    expect(proof).toMatchObject({ erased: true, answers: [{ outcome: 'done', code: '20000', requested_by: 'dpo' }] });
    expect(ajv.validate(proofSchema, proof)).toBe(true);
    expect(await runs.prove('no')).toMatchObject({
      erased: false,
      answers: [{ code: '40001' }],
    });
    expect(await runs.prove('b')).toMatchObject({ erased: false, answers: [] });
    expect(JSON.stringify(proof)).not.toContain('"a"');
  });

  it('proves nothing when its chain is broken, nor with the file of another service', async () => {
    await runs.go(['a']);
    await runs.go(['b']);
    const first = runs.pathOf(0);
    renameSync(first, join(runs.folders.root, 'away'));
    expect(await runs.prove('b')).toMatchObject({
      erased: false,
      answers: [],
      problems: [expect.stringContaining('missing')],
    });
    renameSync(join(runs.folders.root, 'away'), first);
    expect(await runs.prove('b')).toMatchObject({
      erased: true,
      base_url: runs.server.url,
      service_id: 's',
      problems: [],
    });

    const ours = join(runs.folders.root, 'ours');
    mkdirSync(ours);
    await runs.go(['c'], { service_id: 'other' });
    expect(await runs.prove('c')).toMatchObject({ erased: false, answers: [], service_id: 's' });
    cpSync(join(runs.folders.ledger, 'ledger.key'), join(ours, 'ledger.key'));
    cpSync(runs.pathOf(0), join(ours, runs.folders.ledgerFiles()[0]));
    cpSync(runs.pathOf(2), join(ours, runs.folders.ledgerFiles()[2].replace('000003', '000002')));
    expect(await runs.prove('c', ours)).toMatchObject({
      erased: false,
      answers: [],
      problems: [expect.stringContaining('does not follow')],
    });
  });
});
