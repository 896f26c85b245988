import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { QuotaStateFile } from '../../../src/service/quota.ts';
import { holderText } from '../../support/processes/holder.ts';
import { ManualClock, recorder, settle } from '../../support/service/service.ts';

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
const stateFile = () =>
  new QuotaStateFile({ root, baseUrl: 'https://api.example', serviceId: 'svc-1', clock, logger: heard.logger });
const count = (file = stateFile(), signal?: AbortSignal) =>
  file.update((state) => ({ state: { ...state, next: state.next + 1 }, result: state.next }), signal);

describe('the state of the quota', () => {
  it('is kept in a folder of its user alone, in a file of its own [R188]', async () => {
    expect([await count(), await count()]).toEqual([1, 2]);
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    const names = readdirSync(folder());
    expect(names).toEqual([expect.stringMatching(/^quota-[0-9a-f]{16}\.json$/)]);
    expect(statSync(join(folder(), names[0])).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['a link', () => symlinkSync(mkdtempSync(join(root, 'theirs-')), folder())],
    ['open to others', () => mkdirSync(folder())],
  ])('is not looked for in a folder that is %s: exit 2, named [R188]', async (_name, make) => {
    make();
    chmodSync(folder(), 0o777);
    await expect(count()).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(folder()) });
  });

  it('behind a lock that is never given back is left to the others within seconds [R188]', async () => {
    await count();
    writeFileSync(join(folder(), `${readdirSync(folder())[0]}.lock`), holderText());
    let result: number | undefined;
    void count().then((found) => {
      result = found;
    });
    await clock.passUntil(() => result !== undefined, 5_000, 100);
    expect(result).toBe(2);
    expect(heard.events.map(({ event }) => event)).toEqual(['quota.state']);
  });

  it('behind such a lock is waited for until a stop [R188]', async () => {
    await count();
    writeFileSync(join(folder(), `${readdirSync(folder())[0]}.lock`), holderText());
    const controller = new AbortController();
    const stopped = count(stateFile(), controller.signal);
    await settle();
    controller.abort(new Error('stopped'));
    await expect(stopped).rejects.toThrow('stopped');
  });
});
