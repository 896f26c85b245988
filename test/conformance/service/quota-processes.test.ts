import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validators } from '../../../connectors/validator.mjs';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { ExportClient } from '../../../src/service/export/client.ts';
import { ExportQuota } from '../../../src/service/quota/quota.ts';
import type { Simulator } from '../../../src/simulator/index.ts';
import { bodyOf, EXPORT_REQUEST } from '../../support/service/service.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import { until } from '../../support/wait.ts';

const PROCESSES = 3;
const DAY = addDays(dayAt(systemClock.now()), -3);
let folder = '';
let worker = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'processes-'));
  worker = join(folder, 'worker.mjs');
  await build({
    entryPoints: [resolve(import.meta.dirname, '../../support/processes/export-child.ts')],
    outfile: worker,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    plugins: [validators],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A process that asks for so many exports and prints how many came; undefined where it was killed first. */
function child(sim: Simulator, spool: string, count: number) {
  const words = [worker, sim.url, spool, String(count)];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  const ended = new Promise<string>((done, fail) => {
    child.once('error', fail);
    child.once('close', () => done(text));
  });
  return { process: child, ended };
}

const refusals = (sim: Simulator) => sim.requests().filter(({ status }) => status === 429).length;

describe('processes of one machine on one quota', () => {
  it.each(['fixed', 'sliding'])('send no more exports than allowed and get no 429 (%s)', async (window) => {
    const limits = { exports_per_hour: 25, concurrent_exports: 5, window };
    const sim = await startTestSimulator({ limits }, { clock: systemClock });
    const spool = mkdtempSync(join(folder, 'spool-'));
    const children = Array.from({ length: PROCESSES }, () => child(sim, spool, 10));
    const reported = (await Promise.all(children.map(({ ended }) => ended))).map((text) => JSON.parse(text));
    const sum = (key: 'data' | 'later' | 'refused') => reported.reduce((all, one) => all + one[key], 0);
    // One or two may be left to the next hour: of an export under way nobody knows whether the last word counts it.
    expect(sum('data')).toBeGreaterThanOrEqual(23);
    expect(sum('data')).toBeLessThanOrEqual(25);
    expect([sum('data') + sum('later'), sum('refused')]).toEqual([30, 0]);
    expect(refusals(sim)).toBe(0);
    expect(readdirSync(spool)).toHaveLength(1);
    await sim.close();
  });

  it('the slots of a killed process are released', async () => {
    const sim = await startTestSimulator(
      { faults: [{ kind: 'stall', when: { nth: [1, 2, 3, 4, 5] } }] },
      { clock: systemClock },
    );
    const spool = mkdtempSync(join(folder, 'spool-'));
    const hanging = child(sim, spool, 5);
    await until(() => sim.requests().filter(({ bytes }) => bytes > 0).length === 5);
    hanging.process.kill('SIGKILL');
    await hanging.ended;
    const reported = JSON.parse(await child(sim, spool, 5).ended);
    expect(reported).toMatchObject({ data: 5 });
    expect(refusals(sim)).toBe(0);
    await sim.close();
  });
});

describe('a service that other clients use as well', () => {
  const open = (sim: Simulator) => {
    const quota = new ExportQuota({
      baseUrl: sim.url,
      serviceId: SERVICE_ID,
      maxConcurrentExports: 5,
      exportsPerHour: 100,
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
      maxWaitMs: 60_000,
    });
    return new ExportClient({
      baseUrl: sim.url,
      serviceId: SERVICE_ID,
      exportToken: new Secret(TOKENS.export),
      stallMs: 60_000,
      clock: systemClock,
      env: () => undefined,
      quota,
    });
  };
  const ask = async (service: ReturnType<typeof open>) => {
    const answer = await service.exportEvents({ ...EXPORT_REQUEST, from: DAY, to: DAY }, new AbortController().signal);
    if (answer.kind !== 'data') return answer.kind;
    await bodyOf(answer);
    return 'data';
  };

  it('when others spent most of the hour the rest is used, and no more', async () => {
    const sim = await startTestSimulator({ limits: { exports_per_hour: 12 } }, { clock: systemClock });
    const other = open(sim);
    for (let i = 0; i < 7; i++) await ask(other);
    const service = open(sim);
    const reported = await Promise.allSettled(Array.from({ length: 9 }, () => ask(service)));
    expect(reported.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(refusals(sim)).toBe(0);
    await service.close();
    await other.close();
    await sim.close();
  });

  it.each(['actual', 'zero'])(
    'when others hold slots the concurrency is reduced and every export succeeds (%s)',
    async (remaining) => {
      const limits = { concurrent_exports: 2, concurrent_remaining: remaining };
      const sim = await startTestSimulator({ limits }, { clock: systemClock });
      const service = open(sim);
      const one = async () => {
        for (let tries = 0; tries < 20; tries++) if ((await ask(service)) === 'data') return true;
        return false;
      };
      expect(await Promise.all(Array.from({ length: 8 }, one))).not.toContain(false);
      expect(refusals(sim)).toBeLessThanOrEqual(3);
      await service.close();
      await sim.close();
    },
  );
});
