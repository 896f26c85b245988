import { describe, expect, it } from 'vitest';
import { parseConfiguredCatalog } from '../../../src/airbyte/protocol/catalog-and-states.ts';
import type { Message } from '../../../src/airbyte/protocol/messages.ts';
import { Heartbeat } from '../../../src/airbyte/source/heartbeat.ts';
import { StreamOutput } from '../../../src/airbyte/source/stream-output.ts';
import { LeapingClock } from '../../support/clock.ts';
import { deferred } from '../../support/wait.ts';

function fixture() {
  const clock = new LeapingClock(0);
  const signs: (number | undefined)[] = [];
  const heartbeat = new Heartbeat(clock, (waitingUntil) => signs.push(waitingUntil));
  const { promise: work, resolve: end } = deferred<string>();
  return { clock, signs, heartbeat, work, end };
}

describe('the heartbeat while a day is waited for', () => {
  it('beats every ten minutes', async () => {
    const { clock, signs, heartbeat, work, end } = fixture();
    const waiting = heartbeat.beatWhile(work);
    clock.pass(600_000);
    clock.pass(600_000);
    end('day');
    expect(await waiting).toBe('day');
    clock.pass(600_000);
    expect(signs).toEqual([undefined, undefined]);
  });

  it('reports a wait that began while records were written afterwards, and nothing in between', async () => {
    const { signs, heartbeat, work, end } = fixture();
    heartbeat.setWaitingUntil(40);
    expect(signs).toEqual([]);
    const waiting = heartbeat.beatWhile(work);
    end('day');
    await waiting;
    expect(signs).toEqual([40, undefined]);
  });
});

describe('the sign of life of a stream', () => {
  /** A stream whose reader takes the first beat only when `take` is called. */
  function slowStream() {
    const written: Message[] = [];
    const { promise: isTaken, resolve: take } = deferred();
    const write = async (message: Message) => {
      written.push(message);
      if (message.type === 'TRACE') await isTaken;
    };
    const context = { writer: { write }, clock: new LeapingClock(0) } as never;
    const [configured] = parseConfiguredCatalog({ streams: [{ stream: { name: 'events' } }] });
    const output = new StreamOutput(configured, context);
    const states = () =>
      written.flatMap((message) => (message.type === 'STATE' ? message.state.stream.stream_state : []));
    return { output, take, states };
  }

  it('repeats the state that was written last, also behind a slow reader', async () => {
    const { output, take, states } = slowStream();
    await output.writeState({ from_date: '2026-01-01' }, 0);
    const beat = output.beat(undefined);
    await output.writeState({ from_date: '2026-01-02' }, 1);
    take();
    await beat;
    expect(states().map((state) => Object.values(state)[0])).toEqual(['2026-01-01', '2026-01-02', '2026-01-02']);
  });

  it('repeats no state once the stream has ended', async () => {
    const { output, take, states } = slowStream();
    await output.writeState({ from_date: '2026-01-01' }, 0);
    const written = [output.beat(undefined), output.writeStatus('COMPLETE')];
    take();
    await Promise.all(written);
    expect(states()).toHaveLength(1);
  });
});
