import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { IdleTimeout, Stalled } from '../../../src/service/http/body.ts';

const never = new Promise<never>(() => {});

it('ends a wait for what never comes and heeds no signal, by the time and by the caller [R430]', async () => {
  const { signal } = new AbortController();
  await expect(new IdleTimeout(systemClock, 5, signal).waitFor(never)).rejects.toThrow(Stalled);
  const caller = new AbortController();
  const stopped = new IdleTimeout(systemClock, 60_000, caller.signal).waitFor(never);
  caller.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
}, 5_000);
