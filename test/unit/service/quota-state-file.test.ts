import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OWN_IDENTITY } from '../../../src/fs/process-identity.ts';
import { EMPTY_STATE, type QuotaState, type Slot } from '../../../src/service/quota/state.ts';
import { QuotaStateFile } from '../../../src/service/quota/state-file.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { openTestQuota } from '../../support/service/quota.ts';
import { ManualClock, recorder, settle } from '../../support/service/service.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let root = '';
let heard = recorder();
let clock = new ManualClock();
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'quota-state-'));
  heard = recorder();
  clock = new ManualClock();
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const folder = () => join(root, `dfinery-elt-quota-${process.getuid?.()}`);
const stateFile = (at: string | null = root) =>
  new QuotaStateFile({
    stateRoot: at ?? undefined,
    baseUrl: 'https://api.example',
    serviceId: 'svc-1',
    clock,
    logger: heard.logger,
  });
const count = (file = stateFile(), signal?: AbortSignal) =>
  file.update((state) => [{ ...state, next: state.next + 1 }, state.next], signal);

describe('the state file of the quota', () => {
  it('is private to its user', async () => {
    expect([await count(), await count()]).toEqual([1, 2]);
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    const names = readdirSync(folder());
    expect(names).toEqual([expect.stringMatching(/^quota-[0-9a-f]{16}\.json$/)]);
    expect(statSync(join(folder(), names[0])).mode & 0o777).toBe(0o600);
  });

  it('leaves nothing of a process that was killed while it wrote it', async () => {
    await count();
    const killed = `${path()}.tmp`;
    writeFileSync(killed, 'x'.repeat(9_999));
    expect(await count()).toBe(2);
    expect([existsSync(killed), written().next]).toEqual([false, 3]);
  });

  it.each([
    ['a link', () => symlinkSync(mkdtempSync(join(root, 'theirs-')), folder())],
    ['open to others', () => mkdirSync(folder())],
  ])('is refused in a folder that is %s: exit 2, named', async (_name, make) => {
    make();
    chmodSync(folder(), 0o777);
    await expect(count()).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(folder()) });
  });

  it('with a lock that is never released is abandoned within seconds', async () => {
    await count();
    writeFileSync(join(folder(), `${readdirSync(folder())[0]}.lock`), ownerText());
    let result: number | undefined;
    void count().then((found) => {
      result = found;
    });
    await clock.passUntil(() => result !== undefined, 5_000, 100);
    expect(result).toBe(2);
    expect(heard.events.map(({ event }) => event)).toEqual(['quota.state']);
  });

  it('with such a lock is waited for until a stop', async () => {
    await count();
    writeFileSync(join(folder(), `${readdirSync(folder())[0]}.lock`), ownerText());
    const controller = new AbortController();
    const stopped = count(stateFile(), controller.signal);
    await settle();
    controller.abort(new Error('stopped'));
    await expect(stopped).rejects.toThrow('stopped');
  });
});

const path = () => join(folder(), readdirSync(folder())[0] ?? 'none');
const written = () => JSON.parse(readFileSync(path(), 'utf8')) as QuotaState;
const warnings = () => heard.events.map(({ event, level }) => `${level} ${event}`);

describe('a quota without a shared state', () => {
  it('counts for its process and writes no file', async () => {
    const file = stateFile(null);
    expect([await count(file), await count(file), file.read().next]).toEqual([1, 2, 3]);
    expect(await count(stateFile(null))).toBe(1);
    expect([readdirSync(root), warnings()]).toEqual([[], []]);
  });
});

describe('a shared state that fails', () => {
  it('when it is written counts its work once, and continues alone', async () => {
    const [file, other] = [stateFile(), stateFile()];
    await count(file);
    const full = () => {
      throw systemError('ENOSPC');
    };
    expect(await withCall(fs, 'renameSync', full, () => count(file))).toBe(2);
    expect(await count(other)).toBe(2);
    expect([await count(file), file.read().next]).toEqual([3, 4]);
    expect(written().next).toBe(3);
    expect(warnings()).toEqual(['warn quota.state']);
    expect(heard.events[0].message).toContain('ENOSPC');
  });

  it('when it is read continues alone from the known count, and warns once', async () => {
    const file = stateFile();
    expect([await count(file), await count(file)]).toEqual([1, 2]);
    const denied = (real: (...all: unknown[]) => unknown, of: unknown, ...rest: unknown[]) => {
      if (String(of).endsWith('.json')) throw systemError('EACCES');
      return real(of, ...rest);
    };
    await withCall(fs, 'readFileSync', denied, () => expect(file.read().next).toBe(3));
    expect([await count(file), written().next]).toEqual([3, 3]);
    expect(warnings()).toEqual(['warn quota.state']);
  });

  it('when its lock is created updates the count, after what is there', async () => {
    await count(stateFile());
    const denied = (real: (...all: unknown[]) => unknown, of: unknown, ...rest: unknown[]) => {
      if (String(of).includes('.owner-')) throw systemError('EROFS');
      return real(of, ...rest);
    };
    const file = stateFile();
    expect(await withCall(fs, 'openSync', denied, () => count(file))).toBe(2);
    expect([await count(file), written().next]).toEqual([3, 2]);
    expect(warnings()).toEqual(['warn quota.state']);
  });

  it('by a defect of the program throws it, and writes nothing', async () => {
    const file = stateFile();
    await count(file);
    const work = file.update(() => {
      throw new TypeError('a defect');
    });
    await expect(work).rejects.toThrow('a defect');
    expect([await count(file), warnings()]).toEqual([2, []]);
  });

  it.each([
    ['no state at all', 'x'],
    ['more than any state is', ' '.repeat((1 << 20) + 1)],
  ])('when it is %s starts anew, shared', async (_what, text) => {
    await count(stateFile());
    writeFileSync(path(), text === 'x' ? text : `${JSON.stringify(EMPTY_STATE)}${text}`);
    expect(await count(stateFile())).toBe(1);
    expect(warnings()).toEqual(['warn quota.state']);
    expect(written().next).toBe(2);
  });

  it('of exactly the maximum size is read', async () => {
    await count(stateFile());
    const text = JSON.stringify(written());
    writeFileSync(path(), text.padEnd(1 << 20));
    expect(await count(stateFile())).toBe(2);
    expect(warnings()).toEqual([]);
  });

  it('with a folder in its place is reported, and the run continues', async () => {
    await count(stateFile());
    const place = path();
    rmSync(place);
    mkdirSync(place);
    const file = stateFile();
    expect([await count(file), await count(file)]).toEqual([1, 2]);
    expect(warnings()).toEqual(['warn quota.state']);
  });
});

describe('the slots of a process in the shared state', () => {
  const open = () => openTestQuota({ clock, logger: heard.logger, stateRoot: root });
  const leases = () => new Map(written().slots.map(({ n, freeAt, lease }) => [n, freeAt === undefined ? lease : 0]));

  it('are renewed while one is taken, and no longer', async () => {
    const quota = open();
    const [first, second] = [await quota.enterNow(), await quota.enterNow()];
    expect(clock.pending).toBe(1);
    await first.release();
    clock.pass(30_000);
    await settle();
    expect([...leases()]).toEqual([[2, clock.now() + 120_000]]);
    await second.release();
    expect(clock.pending).toBe(0);
    const before = readFileSync(path(), 'utf8');
    clock.pass(60_000);
    await settle();
    expect(readFileSync(path(), 'utf8')).toBe(before);
    const third = await quota.enterNow();
    expect(clock.pending).toBe(1);
    await third.release();
  });

  it('are renewed without a change to those of others', async () => {
    const [first, second] = [await open().enterNow(), await open().enterNow()];
    const elsewhere = { ...written().slots[1], n: 3, run: 'x', owner: { ...OWN_IDENTITY, host: 'elsewhere' } };
    writeFileSync(path(), JSON.stringify({ ...written(), slots: [...written().slots, elsewhere] }));
    clock.pass(30_000);
    await settle();
    expect([...leases()]).toEqual([
      [1, clock.now() + 120_000],
      [2, clock.now() + 120_000],
      [3, elsewhere.lease],
    ]);
    await first.release();
    await second.release();
  });

  it('of others count while their lease is plausible', async () => {
    const quota = open();
    const permit = await quota.enterNow();
    const other = (n: number, leftMs: number): Slot => ({
      ...written().slots[0],
      n,
      run: 'x',
      owner: { ...OWN_IDENTITY, host: 'elsewhere' },
      lease: clock.now() + leftMs,
    });
    const slots = [other(1, 0), other(2, 1), other(3, 240_000), other(4, 240_001)];
    writeFileSync(path(), JSON.stringify({ ...EMPTY_STATE, slots }));
    expect(quota.forecast(9).startableNow).toBe(3);
    await permit.release();
  });
});
