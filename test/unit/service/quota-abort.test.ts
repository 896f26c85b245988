import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/base/log.ts';
import { openTestQuota } from '../../support/service/quota.ts';
import { ManualClock, settle } from '../../support/service/service.ts';

describe('the quota', () => {
  it('an abort at the very moment of the permit gives its place back [R489]', async () => {
    const controller = new AbortController();
    const clock = new ManualClock();
    const quota = openTestQuota({ clock, logger: silentLogger, stateRoot: undefined });
    const time = clock.now();
    clock.now = () => {
      controller.abort(new Error('enough'));
      return time;
    };
    await expect(quota.enter(controller.signal)).rejects.toThrow('enough');
    await settle(40);
    clock.now = () => time + 60_000;
    expect(quota.forecast(9)).toMatchObject({ startableNow: 5, left: 99 });
  });
});
