import { describe, expect, it, vi } from 'vitest';
import { Heartbeat } from '../../../src/airbyte/source/heartbeat.ts';
import { FakeClock } from '../../support/extract/extraction.ts';

function fixture() {
  const clock = new FakeClock(0);
  const signs: (number | undefined)[] = [];
  const heartbeat = new Heartbeat(clock, (until) => signs.push(until));
  let end = (_value: string) => {};
  const work = new Promise<string>((resolve) => {
    end = resolve;
  });
  return { clock, signs, heartbeat, work, end };
}

describe('the heartbeat while a day is waited for', () => {
  it('beats every ten minutes', async () => {
    const { clock, signs, heartbeat, work, end } = fixture();
    const after = vi.spyOn(clock, 'after');
    const waiting = heartbeat.during(work);
    clock.ring();
    clock.ring();
    end('day');
    expect(await waiting).toBe('day');
    clock.ring();
    expect(signs).toEqual([undefined, undefined]);
    expect(after).toHaveBeenCalledWith(600_000, expect.any(Function));
  });

  it('reports an exhausted limit at once, at every beat, and when it is over', async () => {
    const { clock, signs, heartbeat, work, end } = fixture();
    const waiting = heartbeat.during(work);
    heartbeat.waiting(40);
    clock.ring();
    heartbeat.waiting(undefined);
    end('day');
    await waiting;
    expect(signs).toEqual([40, 40, undefined]);
  });

  it('reports a wait that began while records were written afterwards, and nothing in between', async () => {
    const { signs, heartbeat, work, end } = fixture();
    heartbeat.waiting(40);
    expect(signs).toEqual([]);
    const waiting = heartbeat.during(work);
    end('day');
    await waiting;
    expect(signs).toEqual([40, undefined]);
  });
});
