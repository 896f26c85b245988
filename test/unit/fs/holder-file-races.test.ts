import fs, {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHolderFile, isAbandoned, readHolderFile, startHeartbeat } from '../../../src/fs/holder-file.ts';
import { isLeased, Lease, leaseOf } from '../../../src/fs/lease.ts';
import { holderText } from '../../support/processes/holder.ts';
import { ManualClock } from '../../support/service/service.ts';
import { openBelow, systemError, withCall } from '../../support/system-calls.ts';

const RUN = 'r0000000000000000';
let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'holder-'));
  path = join(dir, 'lock');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

type Real = (...all: unknown[]) => unknown;
const noLinks = () => {
  throw systemError('ENOTSUP');
};

describe('the file of a holder', () => {
  it('that cannot be written whole does not stay: nobody would hold it', async () => {
    const full = () => {
      throw systemError('ENOSPC');
    };
    await expect(withCall(fs, 'writeSync', full, () => createHolderFile(path))).rejects.toThrow('ENOSPC');
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is whole when it gets its name, so that whoever is killed before has left none [R569]', async () => {
    const seen: unknown[] = [];
    const link = (real: Real, ...all: unknown[]) => {
      seen.push(existsSync(path), JSON.parse(readFileSync(String(all[0]), 'utf8')));
      return real(...all);
    };
    const token = await withCall(fs, 'linkSync', link, () => createHolderFile(path));
    expect(seen).toEqual([false, expect.objectContaining({ token })]);
    expect([readdirSync(dir), statSync(path).nlink]).toEqual([['lock'], 1]);
  });

  it.each([
    ['another takes it at this moment', () => writeFileSync(path, 'theirs'), ['lock']],
    ['its draft is swept', (draft: string) => rmSync(draft), []],
  ])('is not made where %s', async (_how, meanwhile, left) => {
    const link = (real: Real, ...all: unknown[]) => {
      meanwhile(String(all[0]));
      return real(...all);
    };
    expect(await withCall(fs, 'linkSync', link, () => createHolderFile(path))).toBeUndefined();
    expect(readdirSync(dir)).toEqual(left);
  });

  it('that cannot be named is the system’s error', async () => {
    const refused = () => {
      throw systemError('EIO');
    };
    await expect(withCall(fs, 'linkSync', refused, () => createHolderFile(path))).rejects.toThrow('EIO');
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is made on a file system without hard links as well', async () => {
    const token = await withCall(fs, 'linkSync', noLinks, () => createHolderFile(path));
    expect(readHolderFile(path)?.token).toBe(token);
    expect(await withCall(fs, 'linkSync', noLinks, () => createHolderFile(path))).toBeUndefined();
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it.each([
    ['taken away', () => {}],
    ['taken away and made by another', () => writeFileSync(path, holderText())],
  ])('there, that was %s before it was written is nobody’s of ours, and is left as it is', async (_how, next) => {
    const write = (real: Real, ...all: unknown[]) => {
      if (existsSync(path)) {
        rmSync(path);
        next();
      }
      return real(...all);
    };
    const make = () => withCall(fs, 'writeSync', write, () => createHolderFile(path));
    expect(await withCall(fs, 'linkSync', noLinks, make)).toBeUndefined();
    if (readdirSync(dir).length > 0) expect(readFileSync(path, 'utf8')).toBe(holderText());
  });

  it.runIf(process.platform === 'linux')('is never kept open, whoever looks at it', () => {
    const clock = new ManualClock();
    const token = createHolderFile(path) ?? '';
    const stop = startHeartbeat(path, token, clock);
    clock.pass(10_000);
    stop();
    writeFileSync(path, holderText({ host: 'elsewhere' }));
    const holder = readHolderFile(path) ?? expect.unreachable('no holder');
    expect(isAbandoned(holder, path)).toBe(false);
    expect(openBelow(dir)).toEqual([]);
  });
});

describe('a lease', () => {
  it('is known by the name of its file alone', () => {
    expect(leaseOf(`${RUN}.lease`)).toBe(RUN);
    for (const name of [`${RUN}.part`, `x${RUN}.lease`, `${RUN}.lease2`, 'r00.lease', 'lease'])
      expect(leaseOf(name)).toBeUndefined();
  });

  it('whose file went away under its hands was not taken, and may be taken anew', async () => {
    const clock = new ManualClock();
    const write = (real: Real, ...all: unknown[]) => {
      for (const name of readdirSync(dir)) rmSync(join(dir, name));
      return real(...all);
    };
    const taking = withCall(fs, 'writeSync', write, () => Lease.take(dir, clock));
    await expect(taking).rejects.toMatchObject({ code: 'EEXIST' });
    expect(clock.pending).toBe(0);
  });

  it('in a folder that is removed meanwhile is no run’s', async () => {
    const lease = join(dir, `${RUN}.lease`);
    writeFileSync(lease, holderText({ host: 'elsewhere' }));
    utimesSync(lease, new Date(), new Date());
    const gone = (real: Real, of: unknown, ...rest: unknown[]) => {
      if (String(of).includes('.time-')) rmSync(dir, { recursive: true });
      return real(of, ...rest);
    };
    expect(await withCall(fs, 'openSync', gone, () => isLeased(dir, RUN))).toBe(false);
  });

  it('that cannot be read is the system’s error: nothing of its run may be touched', () => {
    symlinkSync('nowhere', join(dir, `${RUN}.lease`));
    expect(() => isLeased(dir, RUN)).toThrow('ELOOP');
  });
});
