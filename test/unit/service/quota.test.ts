import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import stateSchema from '../../../schemas/quota-state.json' with { type: 'json' };
import { UserError } from '../../../src/base/errors.ts';
import { OWN_IDENTITY } from '../../../src/fs/process-identity.ts';
import type { ExportQuota, ExportQuotaOptions, Permit } from '../../../src/service/quota/quota.ts';
import type { AnswerHead } from '../../../src/service/quota/rules.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { openTestQuota } from '../../support/service/quota.ts';
import { ManualClock, recorder, settle } from '../../support/service/service.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;
let folder = '';
let clock = new ManualClock();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quota-'));
  clock = new ManualClock();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const log = () => recorder();
const openQuota = (more: Partial<ExportQuotaOptions> = {}, heard = log()): ExportQuota =>
  openTestQuota({ clock, logger: heard.logger, stateRoot: folder, ...more });
const NEVER = new AbortController().signal;
const ok = (remaining?: number, resetAt?: number): AnswerHead => ({
  status: 200,
  limited: false,
  limits: { remaining, resetAt, retryAt: undefined },
});
const refused = (remaining?: number, resetAt?: number): AnswerHead => ({
  ...ok(remaining, resetAt),
  status: 429,
  limited: true,
});
const stateFolder = () => join(folder, readdirSync(folder)[0] ?? 'none');
const stateFile = () =>
  join(stateFolder(), readdirSync(stateFolder()).find((name) => name.endsWith('.json')) ?? 'none');

/** Enters as many as get in, and says how many are left outside. */
async function enterMany(quota: ExportQuota, count: number, signal = NEVER) {
  const inside: Permit[] = [];
  const failures: unknown[] = [];
  const all = Array.from({ length: count }, () =>
    quota.enter(signal).then(
      (permit) => inside.push(permit),
      (error: unknown) => failures.push(error),
    ),
  );
  await settle(40);
  return { inside, failures, all };
}

/** The state as it stands in its file keeps to its schema at the end of every test that wrote one. */
const fitsSchema = new Ajv({ strict: false }).compile(stateSchema);
afterEach(() => {
  for (const name of readdirSync(folder, { recursive: true }).map(String)) {
    const text = name.endsWith('.json') ? readFileSync(join(folder, name), 'utf8') : '';
    if (text.startsWith('{"v":1,')) expect(fitsSchema(JSON.parse(text)), JSON.stringify(fitsSchema.errors)).toBe(true);
  }
});

describe('the quota', () => {
  it('admits the first export alone, and after its answer as many as may run', async () => {
    const quota = openQuota();
    const { inside, all } = await enterMany(quota, 7);
    expect(inside).toHaveLength(1);
    await inside[0].answered(ok(99, clock.now() + HOUR));
    await settle(40);
    expect(inside).toHaveLength(5);
    for (const permit of inside.splice(0)) await permit.release();
    await settle(40);
    clock.pass(60);
    await settle(40);
    expect(inside).toHaveLength(2);
    await Promise.all(all);
  });

  it('admits the next one when an export ended without an answer', async () => {
    const quota = openQuota();
    const { inside } = await enterMany(quota, 2);
    await inside[0].release();
    await inside[0].release();
    await settle(40);
    expect(inside).toHaveLength(2);
  });

  it('obeys the Remaining of the service, less exports under way', async () => {
    const quota = openQuota();
    const { inside } = await enterMany(quota, 6);
    await inside[0].answered(ok(2, clock.now() + HOUR));
    await settle(40);
    expect(inside).toHaveLength(3);
    await inside[1].answered(ok(0, clock.now() + HOUR));
    await inside[2].answered(ok(0, clock.now() + HOUR));
    await settle(40);
    expect(inside).toHaveLength(3);
    await clock.passUntil(() => inside.length > 3, HOUR + 5_000, 60_000);
    expect(inside).toHaveLength(4);
  });

  it('stops everybody after a 429 until the reset, and reports the wait and its end', async () => {
    const heard = log();
    const waits: (number | undefined)[] = [];
    const quota = openQuota({ onWait: (until) => waits.push(until) }, heard);
    const { inside } = await enterMany(quota, 2);
    const resetAt = clock.now() + 20 * 60_000;
    await inside[0].answered(refused(0, resetAt));
    await inside[0].release();
    await settle(40);
    expect(inside).toHaveLength(1);
    expect(waits).toEqual([resetAt + 1_000]);
    expect(heard.events.map(({ event }) => event)).toContain('quota.wait');
    await clock.passUntil(() => inside.length > 1, 21 * 60_000, 30_000);
    expect(inside).toHaveLength(2);
    expect(clock.now()).toBeGreaterThan(resetAt);
    expect(waits).toEqual([resetAt + 1_000, undefined]);
  });

  it('refuses a wait that is longer than allowed, naming it, and accepts shorter ones', async () => {
    const quota = openQuota({ maxWaitMs: 10 * 60_000 });
    const first = await quota.enter(NEVER);
    await first.answered(refused(0, clock.now() + 20 * 60_000));
    await first.release();
    const error = await quota.enter(NEVER).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ kind: 'transient', exitCode: 3, message: expect.stringContaining('20 min 1 s') });
    clock.pass(15 * 60_000);
    const { inside } = await enterMany(quota, 1);
    await clock.passUntil(() => inside.length > 0, 6 * 60_000, 10_000);
    expect(inside).toHaveLength(1);
  });

  it('ends a wait in the queue, for a permit and for the reset by an abort', async () => {
    const quota = openQuota();
    const controller = new AbortController();
    const { inside, failures, all } = await enterMany(quota, 3, controller.signal);
    controller.abort(new Error('enough'));
    await Promise.all(all);
    expect(inside).toHaveLength(1);
    expect(failures.map(String)).toEqual(['Error: enough', 'Error: enough']);
    await inside[0].release();
    const again = await quota.enter(NEVER);
    await again.release();
  });

  it('reports that the service accepts fewer exports at once', async () => {
    const heard = log();
    const quota = openQuota({}, heard);
    const { inside } = await enterMany(quota, 3);
    await inside[0].answered(ok(50, clock.now() + HOUR));
    await settle(40);
    await inside[2].answered(refused(49, clock.now() + HOUR));
    expect(heard.events).toContainEqual(expect.objectContaining({ level: 'warn', event: 'quota.concurrency' }));
  });
});

describe('the shared quota', () => {
  it('admits for two runs together no more than for one', async () => {
    const [one, two] = [openQuota(), openQuota()];
    const first = await one.enter(NEVER);
    await first.answered(ok(99, clock.now() + HOUR));
    const mine = await enterMany(one, 2);
    const theirs = await enterMany(two, 5);
    expect(mine.inside.length + theirs.inside.length).toBe(4);
    await first.release();
    await clock.passUntil(() => theirs.inside.length > 2, 2_000, 100);
    expect(theirs.inside).toHaveLength(3);
  });

  it('counts an hour over several runs', async () => {
    const one = openQuota({ exportsPerHour: 2 });
    for (let i = 0; i < 2; i++) {
      const permit = await one.enter(NEVER);
      await permit.answered(ok());
      await permit.release();
    }
    const { inside } = await enterMany(openQuota({ exportsPerHour: 2 }), 1);
    expect(inside).toHaveLength(0);
    expect(openQuota({ exportsPerHour: 2 }).forecast(1)).toMatchObject({ startableNow: 0 });
    await clock.passUntil(() => inside.length > 0, HOUR + 60_000, 60_000);
    expect(inside).toHaveLength(1);
  });

  it.each([
    ['a process that is no more', { owner: { ...OWN_IDENTITY, pid: DEAD_PID }, lease: MINUTE }],
    ['a lease that was not renewed', { owner: OWN_IDENTITY, lease: -1 }],
    ['a lease of another machine that ran out', { owner: { ...OWN_IDENTITY, host: 'elsewhere' }, lease: -1 }],
    ['a lease longer than any process takes', { owner: { ...OWN_IDENTITY, host: 'elsewhere' }, lease: HOUR }],
  ])('releases the slots of %s', async (_name, { lease, ...dead }) => {
    const first = await openQuota().enter(NEVER);
    await first.answered(ok(50, clock.now() + HOUR));
    await first.release();
    clock.pass(100);
    const stored = JSON.parse(readFileSync(stateFile(), 'utf8'));
    const slots = [1, 2, 3, 4, 5].map((n) => ({ n, run: 'x', answered: true, lease: clock.now() + lease, ...dead }));
    writeFileSync(stateFile(), JSON.stringify({ ...stored, slots }));
    const { inside } = await enterMany(openQuota(), 5);
    expect(inside).toHaveLength(5);
  });

  it('keeps the slots of live processes', async () => {
    const first = await openQuota().enter(NEVER);
    await first.answered(ok(50, clock.now() + HOUR));
    const stored = JSON.parse(readFileSync(stateFile(), 'utf8'));
    const [mine] = stored.slots;
    const slots = [1, 2, 3, 4, 5].map((n) => ({ ...mine, n, run: 'x' }));
    writeFileSync(stateFile(), JSON.stringify({ ...stored, slots }));
    const { inside } = await enterMany(openQuota(), 1);
    expect(inside).toHaveLength(0);
  });

  it('renews its leases for as long as an export takes', async () => {
    const permit = await openQuota().enter(NEVER);
    const leaseOf = () => JSON.parse(readFileSync(stateFile(), 'utf8')).slots[0].lease;
    const before = leaseOf();
    for (let i = 0; i < 10; i++) {
      clock.pass(30_000);
      await settle();
    }
    expect(leaseOf()).toBeGreaterThanOrEqual(before + 270_000);
    await permit.release();
    expect(clock.pending).toBe(0);
  });

  it('is not shared, with a warning, if it cannot be written', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const heard = log();
    const quota = openQuota({ stateRoot: join(file, 'below'), exportsPerHour: 1 }, heard);
    const first = await quota.enter(NEVER);
    await first.answered(ok());
    await first.release();
    expect(heard.events.map(({ event }) => event)).toEqual(['quota.state']);
    expect((await enterMany(quota, 1)).inside).toHaveLength(0);
  });

  it('steals the lock of a dead process, and waits for a live one', async () => {
    await (await openQuota().enter(NEVER)).release();
    const lock = `${stateFile()}.lock`;
    writeFileSync(lock, ownerText({ pid: DEAD_PID }));
    await (await openQuota().enter(NEVER)).release();
    writeFileSync(lock, ownerText());
    const { inside } = await enterMany(openQuota(), 1);
    expect(inside).toHaveLength(0);
    rmSync(lock);
    await clock.passUntil(() => inside.length > 0, 1_000, 20);
    expect(inside).toHaveLength(1);
    expect(readdirSync(stateFolder()).filter((name) => name.includes('lock'))).toEqual([]);
  });

  it('is separate for each service', async () => {
    await (await openQuota().enter(NEVER)).release();
    await (await openQuota({ serviceId: 'svc-2' }).enter(NEVER)).release();
    expect(readdirSync(stateFolder())).toHaveLength(2);
  });

  it('counts a permit that was not waited for', async () => {
    const quota = openQuota({ exportsPerHour: 1 });
    const permit = await quota.enterNow();
    await permit.answered(ok());
    await permit.release();
    expect(quota.forecast(1)).toMatchObject({ startableNow: 0 });
  });
});
