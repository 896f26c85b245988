import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import { ExportClient } from '../../../src/service/export/client.ts';
import { ExportQuota } from '../../../src/service/quota/quota.ts';
import { Fixture, planFor } from '../../support/extract/extraction.ts';
import { handClock, SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import type { TestService } from '../../support/service/test-service.ts';

describe('an extraction from a service', () => {
  const open: { sim?: TestService; fixture?: Fixture } = {};
  afterEach(async () => {
    await open.sim?.close();
    open.fixture?.close();
  });

  it.each([
    [true, 'error'],
    [false, 'empty'],
  ] as const)('has every row of every complete day: inclusive %s, %s', async (to_date_inclusive, future) => {
    const clock = handClock();
    const sim = await startTestSimulator({ days: { to_date_inclusive, future } }, { clock });
    const fixture = new Fixture(new Date(clock.now()).toISOString(), {});
    Object.assign(open, { sim, fixture });
    const deps = { ...fixture.deps(), clock };
    const quota = new ExportQuota({
      maxConcurrentExports: 3,
      clock,
      logger: deps.logger,
    });
    const service = new ExportClient({
      baseUrl: sim.url,
      serviceId: SERVICE_ID,
      exportToken: new Secret(TOKENS.export),
      stallMs: 10_000,
      clock,
      quota,
      env: () => undefined,
    });
    try {
      const plan = planFor(clock, fixture.target.prior(), {
        startDate: '2026-01-12',
        baseUrl: sim.url,
        serviceId: SERVICE_ID,
      });
      for await (const window of extractWindows(plan, { ...deps, service })) await fixture.target.commit(window);
    } finally {
      await service.close();
    }
    expect(fixture.target.state).toMatchObject({ from_date: '2026-01-19', to_date_inclusive });
    const truth = [...sim.truth({ from: '2026-01-12', to: '2026-01-18' })].length;
    expect(truth).toBeGreaterThan(100);
    const complete = fixture.target.receipts.filter((r) => r.covers_to !== null);
    expect(complete.length).toBe(7);
    if (to_date_inclusive) expect(complete.reduce((sum, r) => sum + r.rows, 0)).toBe(truth);
    expect(sim.requests().length).toBe(fixture.counts.exports);
  });
});
