import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { LedgerLock } from '../../../src/deletion/ledger/lock.ts';
import { LedgerRuns } from '../../support/deletion/ledger-runs.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';

let runs: LedgerRuns;
beforeEach(async () => {
  runs = await LedgerRuns.start();
});
afterEach(() => runs.close());

describe('the lock', () => {
  it('lets one run in, and names the other', async () => {
    await runs.go(['a']);
    const lock = await LedgerLock.take(runs.folders.ledger, systemClock);
    const output = await runs.go(['b']);
    expect(output.errors()[0]).toMatchObject({ failure_type: 'transient_error' });
    expect(output.errors()[0].message).toContain(String(process.pid));
    lock.release();
    expect((await runs.go(['b'])).code).toBe(0);
  });

  it('is taken over from a dead process', async () => {
    await runs.go(['a']);
    writeFileSync(join(runs.folders.ledger, 'ledger.lock'), holderText({ pid: DEAD_PID }));
    expect((await runs.go(['b'])).code).toBe(0);
  });

  it('is taken over from another machine only after its silence', async () => {
    await runs.go(['a']);
    const path = join(runs.folders.ledger, 'ledger.lock');
    writeFileSync(path, holderText({ pid: 1, host: 'elsewhere' }));
    await expect(LedgerLock.take(runs.folders.ledger, systemClock)).rejects.toThrow(/elsewhere/);
    const then = systemClock.now() / 1_000 - 600;
    utimesSync(path, then, then);
    (await LedgerLock.take(runs.folders.ledger, systemClock)).release();
  });

  it('that another run has taken over stops the one that was silent for long, before its next request [R181]', async () => {
    await runs.go(['a']);
    const lock = await LedgerLock.take(runs.folders.ledger, systemClock);
    const lines: string[] = [];
    const output = lock.guarded({
      async write(given) {
        lines.push(...given);
      },
      async close() {},
    });
    await output.write(['first']);
    writeFileSync(join(runs.folders.ledger, 'ledger.lock'), holderText());
    await expect(output.write(['second'])).rejects.toMatchObject({ kind: 'transient' });
    expect(lines).toEqual(['first']);
  });
});
