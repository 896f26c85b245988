import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { LedgerStore } from '../../../src/erasure/ledger/ledger.ts';
import { LedgerRuns } from '../../support/deletion/ledger-runs.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';

let runs: LedgerRuns;
beforeEach(async () => {
  runs = await LedgerRuns.start();
});
afterEach(() => runs.close());

/** Takes the lock as a real run does. */
function take(): Promise<LedgerStore> {
  const given = { base_url: runs.server.url, service_id: 's', import_token: 'tok', ledger_dir: runs.folders.ledger };
  const { config } = parseDestinationConfig(given, () => undefined);
  return LedgerStore.open({ config, isReal: true, clock: systemClock, lines: undefined });
}

describe('the lock', () => {
  it('admits one run, and names it to the next', async () => {
    await runs.go(['a']);
    const store = await take();
    const output = await runs.go(['b']);
    expect(output.errors()[0]).toMatchObject({ failure_type: 'transient_error' });
    expect(output.errors()[0].message).toContain(String(process.pid));
    await store.close();
    expect((await runs.go(['b'])).code).toBe(0);
  });

  it('of a dead process is stolen', async () => {
    await runs.go(['a']);
    writeFileSync(join(runs.folders.ledger, 'ledger.lock'), ownerText({ pid: DEAD_PID }));
    expect((await runs.go(['b'])).code).toBe(0);
  });

  it('of another machine is stolen only after a minute of silence', async () => {
    await runs.go(['a']);
    const path = join(runs.folders.ledger, 'ledger.lock');
    writeFileSync(path, ownerText({ pid: 1, host: 'elsewhere' }));
    await expect(take()).rejects.toThrow(/elsewhere/);
    const then = systemClock.now() / 1_000 - 600;
    utimesSync(path, then, then);
    await (await take()).close();
  });

  it('that was stolen stops a suspended run before its next request', async () => {
    await runs.go(['a']);
    const ledger = await (await take()).start({ list: 'l', ids: 1 });
    await ledger.write({ kind: 'purge_only', id: 'a' });
    writeFileSync(join(runs.folders.ledger, 'ledger.lock'), ownerText());
    await expect(ledger.write({ kind: 'purge_only', id: 'b' })).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringContaining('Another run has taken over the ledger'),
    });
    await expect(ledger.close()).rejects.toThrow('Another run');
    expect(
      runs.folders
        .ledgerLines()
        .slice(-2)
        .map(({ kind }) => kind),
    ).toEqual(['open', 'purge_only']);
  });
});
