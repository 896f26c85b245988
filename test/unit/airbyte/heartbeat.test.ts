import { describe, expect, it } from 'vitest';
import { Heartbeat } from '../../../src/airbyte/source/heartbeat.ts';
import type { Clock } from '../../../src/base/clock.ts';

const MINUTE = 60_000;

/** A clock whose timers fire when the test moves it on. */
class Timers implements Clock {
  #now = 0;
  #timers: { at: number; callback: () => void }[] = [];
  now = () => this.#now;
  sleep = async () => {};
  after = (ms: number, callback: () => void) => {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  };

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#now = next.at;
      next.callback();
    }
    this.#now = end;
  }
}

function fixture() {
  const clock = new Timers();
  const said: string[] = [];
  const at = () => `${clock.now() / MINUTE}:`;
  const heartbeat = new Heartbeat(clock, (until) => {
    said.push(`${at()} ${until === undefined ? 'alive' : `limited until ${until / MINUTE}`}`);
  });
  let end = (_value: string) => {};
  const work = new Promise<string>((resolve) => {
    end = resolve;
  });
  return { clock, said, heartbeat, work, end };
}

describe('the heartbeat while a day is waited for', () => {
  it('beats every ten minutes', async () => {
    const { clock, said, heartbeat, work, end } = fixture();
    const waiting = heartbeat.during(work);
    clock.advance(25 * MINUTE);
    end('day');
    expect(await waiting).toBe('day');
    clock.advance(60 * MINUTE);
    expect(said).toEqual(['10: alive', '20: alive']);
  });

  it('reports an exhausted limit at once, at every beat, and when it is over', async () => {
    const { clock, said, heartbeat, work, end } = fixture();
    const waiting = heartbeat.during(work);
    clock.advance(5 * MINUTE);
    heartbeat.waiting(40 * MINUTE);
    clock.advance(16 * MINUTE);
    heartbeat.waiting(undefined);
    end('day');
    await waiting;
    expect(said).toEqual(['5: limited until 40', '10: limited until 40', '20: limited until 40', '21: alive']);
  });

  it('reports a wait that began while records were written afterwards, and nothing in between', async () => {
    const { clock, said, heartbeat, work, end } = fixture();
    heartbeat.waiting(40 * MINUTE);
    clock.advance(30 * MINUTE);
    expect(said).toEqual([]);
    const waiting = heartbeat.during(work);
    end('day');
    await waiting;
    expect(said).toEqual(['30: limited until 40', '30: alive']);
  });
});
