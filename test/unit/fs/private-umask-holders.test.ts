import { afterEach, beforeEach, expect, it } from 'vitest';
import { holdPrivateUmask } from '../../../src/fs/private-umask.ts';

/** The real `umask`, which cannot set it if this process is a thread. */
const real = process.umask;
let mask = 0;
beforeEach(() => {
  mask = 0o022;
  process.umask = (next?: number | string) => {
    const before = mask;
    if (next !== undefined) mask = Number(next);
    return before;
  };
});
afterEach(() => {
  process.umask = real;
});

it('files are private while anybody holds the umask, and the umask is restored after that', () => {
  for (let round = 0; round < 2; round++) {
    const [first, second] = [holdPrivateUmask(), holdPrivateUmask()];
    expect(mask).toBe(0o077);
    first();
    first();
    expect(mask).toBe(0o077);
    second();
    expect(mask).toBe(0o022);
    second();
    expect(mask).toBe(0o022);
  }
});

it('work continues under the umask of the process when it cannot be set', () => {
  process.umask = () => {
    throw new Error('not in a thread');
  };
  const release = holdPrivateUmask();
  expect(() => release()).not.toThrow();
});
