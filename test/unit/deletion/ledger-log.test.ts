import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { fileName } from '../../../src/erasure/ledger/file.ts';
import { proveErasure, verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { code, json, record, SUCCESS, setUpDeletions, state } from '../../support/deletion/deletions.ts';

const KEY = 'k'.repeat(32);
const setup = setUpDeletions({ service_id: 's', import_token: 'tok-1234', ledger_dir: undefined, ledger_key: KEY });

describe('a ledger in the log', () => {
  it('can be verified, and proves what it did, when its lines are written to a file', async () => {
    const output = await setup.write([record('a'), record('b'), state(1)]);
    const lines = output.logs('ledger.line');
    const { run } = JSON.parse(lines[0]);
    expect(JSON.parse(lines[0])).toMatchObject({ kind: 'open', base_url: setup.server.url, service_id: 's', ids: 2 });
    mkdirSync(setup.folders.ledger);
    writeFileSync(join(setup.folders.ledger, fileName(1, run)), `${lines.join('\n')}\n`);
    const verdict = await verifyLedger(setup.folders.ledger, new Secret(KEY));
    expect(verdict).toMatchObject({ ok: true, files: [{ lines: 6, closed: true }] });
    expect(output.text).toContain(`Head of the ledger: ${verdict.head}`);
    const query = { folder: setup.folders.ledger, key: new Secret(KEY), service: undefined };
    expect(await proveErasure('b', query)).toMatchObject({ erased: true, answers: [{ run, outcome: 'done' }] });
  });

  it('has no earlier run: an id that is requested again is deleted again', async () => {
    setup.answer = ({ id }, response) => (id === 'b' ? code(response, '40201') : json(response, SUCCESS));
    await setup.write([record('a'), record('b'), state(1)]);
    setup.answer = (_d, response) => json(response, SUCCESS);
    const output = await setup.write([record('a'), record('b'), state(1)]);
    expect(setup.server.ids()).toEqual(['a', 'b', 'a', 'b']);
    expect(output.text).not.toContain('never ended');
    expect(output.code).toBe(0);
  });
});
