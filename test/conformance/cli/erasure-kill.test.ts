import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { event, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import { CliChild, PROGRAM } from '../../support/processes/cli-child.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const KILLS = process.env.SOAK_SEEDS === undefined ? 6 : 90;
const KILL_AFTER = join(import.meta.dirname, '../../support/processes/kill-after.cjs');
const KEPT = ['events.duckdb', 'lake', 'delta'];
const setup = setUpErasure();

it('after kill -9 at any step of an erasure the same command finishes it, and no other row is lost', async () => {
  const { case: erasure } = setup;
  await erasure.load([event('m1'), event('m1', 2), event('m2'), event('m3')]);
  for (const name of KEPT) erasure.copy(name, `base/${name}`);
  const plan = await erasure.plan('--id', 'm1');
  const config = ['--config', erasure.at('dfinery.json')];
  const words = ['forget', '--id', 'm1', '--json', ...config, '--execute', '--confirm', plan.hash];
  const start = (more: Record<string, string> = {}) =>
    new CliChild(process.execPath, ['-r', KILL_AFTER, PROGRAM, ...words], {
      TMPDIR: erasure.at(''),
      ...erasure.env,
      ...more,
    }).ended;
  const whole = await start({ STEPS_FILE: erasure.at('steps') });
  expect(whole.code, whole.stderr).toBe(0);
  const steps = Number(readFileSync(erasure.at('steps'), 'utf8'));
  expect(steps).toBeGreaterThan(10);

  const random = new SeededRandom(KILLS);
  for (let kill = 0; kill < KILLS; kill++) {
    for (const name of KEPT) erasure.copy(`base/${name}`, name);
    const step = 1 + Math.floor(((kill + random.unit()) / KILLS) * (steps - 1));
    const killed = await start({ KILL_AFTER: `any:${step}` });
    expect(killed.signal ?? killed.code, `step ${step}`).toSatisfy((end) => end === 'SIGKILL' || end === 0);
    const again = await start();
    expect(again.code, `step ${step} of ${steps}: ${again.stderr}`).toBe(0);
    for (const place of PLACES) {
      const [target = '', path = ''] = place.split(' ');
      const verified = await erasure.run('verify', target, erasure.at(path));
      expect(verified.code, `${place} after step ${step}: ${verified.said}`).toBe(0);
      for (const [id, rows] of Object.entries({ m1: 0, m2: 1, m3: 1 })) {
        const shown = await erasure.run('person', '--id', id, '--in', target, erasure.at(path));
        expect(shown.result.split('\n').filter(Boolean), `${id} in ${place} after step ${step}`).toHaveLength(rows);
      }
    }
    const found = erasure.fixture.holding('marked-u-m1').filter((path) => !path.startsWith(erasure.at('base')));
    expect(found, `after step ${step}`).toEqual([]);
  }
  // The service was asked once: the ledger remembers the answer over all kills.
  expect(new Set(erasure.requested())).toEqual(new Set(['m1']));
  const proof = await erasure.run('forget', '--proof', 'm1');
  expect([proof.code, proof.result]).toEqual([0, expect.stringContaining('the service confirmed the deletion')]);
});
