import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { preparedFiles } from '../../../bench/prepared-files.ts';
import type { Simulator } from '../../../src/simulator/index.ts';
import { parseScenario } from '../../../src/simulator/index.ts';
import { FAULTS, SCENARIO_SCHEMA } from '../../../src/simulator/scenario.ts';
import {
  dayBody,
  deleteRequest,
  exportRequest,
  handClock,
  NOW,
  SERVICE_ID,
  startTestSimulator,
  TOKENS,
} from '../../support/service/simulator.ts';
import { until } from '../../support/wait.ts';

const DAY = '2026-01-10';
let sim: Simulator | undefined;
afterEach(async () => sim?.close());

async function status(simulator: Simulator, body: unknown = dayBody(DAY)): Promise<number> {
  const answer = await exportRequest(simulator, body);
  await answer.arrayBuffer();
  return answer.status;
}

describe('the limits of the service', () => {
  it('have a fixed window that reopens as a whole', async () => {
    const clock = handClock();
    sim = await startTestSimulator({ limits: { exports_per_hour: 2 } }, { clock });
    expect(await status(sim)).toBe(200);
    clock.advance(1_800_000);
    expect([await status(sim), await status(sim)]).toEqual([200, 429]);
    const refused = await exportRequest(sim, dayBody(DAY));
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(Number(refused.headers.get('x-ratelimit-reset'))).toBe(NOW + 3_600_000);
    clock.advance(1_800_000);
    expect([await status(sim), await status(sim), await status(sim)]).toEqual([200, 200, 429]);
  });

  it('have a sliding window that reopens one request at a time', async () => {
    const clock = handClock();
    sim = await startTestSimulator({ limits: { exports_per_hour: 2, window: 'sliding' } }, { clock });
    await status(sim);
    clock.advance(1_800_000);
    await status(sim);
    clock.advance(1_800_000);
    expect([await status(sim), await status(sim)]).toEqual([200, 429]);
  });

  it('admit five exports at once, and free a slot when its body ends', async () => {
    sim = await startTestSimulator({ faults: [{ kind: 'stall', at_byte: 10, when: { nth: [1, 2, 3, 4, 5] } }] });
    const open = await Promise.all(Array.from({ length: 5 }, () => exportRequest(sim as Simulator, dayBody(DAY))));
    const sixth = await exportRequest(sim, dayBody(DAY));
    expect(sixth.status).toBe(429);
    expect(sixth.headers.get('x-ratelimit-remaining')).toBe('95');
    sim.setScenario({ limits: { concurrent_remaining: 'zero' } });
    expect((await exportRequest(sim, dayBody(DAY))).headers.get('x-ratelimit-remaining')).toBe('0');
    await open[0].body?.cancel();
    await expect.poll(() => status(sim as Simulator)).toBe(200);
    for (const one of open.slice(1)) await one.body?.cancel();
    expect(sim.requests()[0].outcome).toBe('fault:stall');
  });

  it('count failed exports, or do not', async () => {
    sim = await startTestSimulator({ limits: { exports_per_hour: 1 } });
    expect([await status(sim, {}), await status(sim)]).toEqual([400, 429]);
    await sim.close();
    sim = await startTestSimulator({ limits: { exports_per_hour: 1, failed_exports_count: false } });
    expect([await status(sim, {}), await status(sim)]).toEqual([400, 200]);
  });

  it.each([
    ['ms', String(NOW + 3_600_000)],
    ['s', String((NOW + 3_600_000) / 1_000)],
    ['absent', null],
    ['nonsense', 'soon'],
    ['past', String(NOW - 60_000)],
  ])('have a reset in the form: %s', async (reset, want) => {
    sim = await startTestSimulator({
      limits: { reset, headers: 'X-Rate-Limit', retry_after: true, exports_per_hour: 1 },
    });
    const answer = await exportRequest(sim, dayBody(DAY));
    expect(answer.headers.get('x-rate-limit-reset')).toBe(want);
    expect(answer.headers.get('x-rate-limit-limit')).toBe('1H');
    const refused = await exportRequest(sim, dayBody(DAY));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
  });

  it('have a window of a minute for deletions', async () => {
    const clock = handClock();
    sim = await startTestSimulator({ limits: { deletions_per_minute: 2 } }, { clock });
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await deleteRequest(sim, `id-${i}`)).status);
    clock.advance(60_000);
    statuses.push((await deleteRequest(sim, 'id-4')).status);
    expect(statuses).toEqual([200, 200, 429, 429, 200]);
    expect(sim.deletions().map((one) => one.deleted)).toEqual([1, 1, 0, 0, 1]);
  });
});

describe('the server of the simulator', () => {
  it('answers 404 for another path and 405 for another method', async () => {
    sim = await startTestSimulator();
    expect((await fetch(`${sim.url}/api/v1/export/other`, { method: 'POST' })).status).toBe(404);
    expect((await fetch(`${sim.url}/api/v1/export/event`)).status).toBe(405);
    expect(sim.requests().map((one) => one.outcome)).toEqual(['not_found', 'method_not_allowed']);
  });

  it('listens on 127.0.0.1 and on no other address of the machine', async () => {
    sim = await startTestSimulator();
    expect(new URL(sim.url).hostname).toBe('127.0.0.1');
    const others = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
    for (const host of ['127.0.0.2', ...others.filter((one) => one.family === 'IPv4').map((one) => one.address)]) {
      if (host !== '127.0.0.1') await expect(fetch(`http://${host}:${sim.port}/`)).rejects.toThrow();
    }
  });

  it('answers an unknown service by scenario, and refuses a reissued token', async () => {
    sim = await startTestSimulator();
    const ask = () =>
      fetch(`${(sim as Simulator).url}/api/v1/export/event?service_id=other`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${TOKENS.export}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(dayBody(DAY)),
      });
    expect((await ask()).status).toBe(401);
    sim.setScenario({ answers: { unknown_service: '400' } });
    expect((await ask()).status).toBe(400);
    sim.setScenario({ answers: { unknown_service: 'empty' } });
    expect((await (await ask()).text()).trim().split('\n')).toHaveLength(1);
    sim.setTokens({ export: 'another' });
    expect(await status(sim)).toBe(401);
  });

  it('keeps the requests that it saw, and sends its own clock as Date', async () => {
    sim = await startTestSimulator({ answers: { date_skew_s: -7_200 } });
    const answer = await exportRequest(sim, dayBody(DAY), { 'X-Test': 'yes' });
    const bytes = (await answer.arrayBuffer()).byteLength;
    expect(Date.parse(answer.headers.get('date') ?? '')).toBe(NOW - 7_200_000);
    await expect.poll(() => sim?.requests()[0].done).toBe(true);
    expect(sim.requests()[0]).toMatchObject({
      number: 1,
      operation: 'export',
      method: 'POST',
      path: '/api/v1/export/event',
      query: { service_id: SERVICE_ID },
      body: dayBody(DAY),
      at: NOW,
      status: 200,
      outcome: 'ok',
      bytes,
    });
    expect(sim.requests()[0].headers['x-test']).toBe('yes');
  });

  it('sends a large day only as fast as it is read', async () => {
    sim = await startTestSimulator({}, { rowsPerDay: 1_000_000 });
    const answer = await exportRequest(sim, dayBody(DAY));
    const reader = answer.body?.getReader();
    await reader?.read();
    // Until it goes no further: what the system keeps between the two is full.
    const looks: number[] = [];
    const stands = () => looks.length > 10 && looks.at(-1) === looks.at(-10);
    await until(() => stands() || looks.push((sim as Simulator).requests()[0].bytes) < 0);
    expect(sim.requests()[0]).toMatchObject({ done: false });
    expect(looks.at(-1)).toBeLessThan(64 * 1024 * 1024);
    await reader?.cancel();
    await expect.poll(() => sim?.requests()[0].outcome).toBe('closed');
  });

  it('serves prepared files unchanged', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'simulator-'));
    try {
      await writeFile(join(folder, '2026-01-09.csv'), '"a\nb",c\n1,2\n');
      await writeFile(join(folder, '2026-01-10.csv'), '"a\nb",c\n3,4');
      sim = await startTestSimulator({}, { bodyOf: preparedFiles(folder) });
      const text = async (from: string, to = from) => (await exportRequest(sim as Simulator, dayBody(from, to))).text();
      expect(await text('2026-01-10')).toBe('"a\nb",c\n3,4');
      expect(await text('2026-01-08', '2026-01-12')).toBe('"a\nb",c\n1,2\n3,4');
      expect(await text('2026-01-12')).toMatch(/^df_api_version,.*event_name\n$/);
      sim.setScenario({ faults: [{ kind: 'cut', at_byte: 9 }] });
      expect(await text(DAY)).toBe('"a\nb",c\n3');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a scenario', () => {
  it('has a default for every key', () => {
    expect(parseScenario({}).days).toMatchObject({ to_date_inclusive: true, selects_on: 'server', history_days: 30 });
  });

  it('is refused with every problem named', () => {
    const bad = {
      dais: {},
      days: { zone_hours: 'KST', future: 'maybe' },
      faults: [{ kind: 'cut', at_bite: 1 }, { kind: 'boom' }],
    };
    const refused = () => parseScenario(bad);
    for (const part of [
      '"dais" is not known',
      '"days.zone_hours" is "KST"',
      '"empty", "error"',
      '"faults[0].at_bite" is not known',
      '"faults[1].kind" is "boom"',
    ]) {
      expect(refused).toThrow(part);
    }
    expect(() => parseScenario([])).toThrow('not a JSON object');
    expect(() => parseScenario({ columns: { own: [{ values: [] }] } })).toThrow('"columns.own[0].name" is missing');
  });

  it('is patched section by section', async () => {
    sim = await startTestSimulator({ days: { zone_hours: 1 }, rows: { by_day: { [DAY]: 3 } } });
    sim.setScenario({ days: { future: 'error' } });
    expect(sim.scenario.days).toMatchObject({ zone_hours: 1, future: 'error' });
    expect(sim.scenario.rows.by_day[DAY]).toBe(3);
    expect(() => sim?.setScenario({ days: { futur: 'error' } })).toThrow('not known');
  });
});

it('schemas/scenario.json is the schema of a scenario', async () => {
  const text = `${JSON.stringify(SCENARIO_SCHEMA, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('../../../schemas/scenario.json');
});

it('docs/simulator.md names every key of a scenario and every kind of fault', () => {
  const page = readFileSync(new URL('../../../docs/simulator.md', import.meta.url), 'utf8');
  const keys = Object.entries(parseScenario({})).flatMap(([section, part]) => [section, ...Object.keys(part)]);
  const kinds = Object.values(FAULTS).flatMap(Object.keys);
  expect([...keys, ...kinds].filter((key) => !page.includes(`\`${key}\``))).toEqual([]);
  expect(keys.length).toBeGreaterThan(50);
});
