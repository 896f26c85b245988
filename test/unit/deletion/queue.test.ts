import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Checkpoints } from '../../../src/deletion/execute/checkpoints.ts';
import { DeletionQueue } from '../../../src/deletion/execute/queue.ts';
import type { Decision, Step } from '../../../src/deletion/stage/stage.ts';
import { code, json, record, SUCCESS, setUpDeletions, state, statsOf } from '../../support/deletion/deletions.ts';

const setup = setUpDeletions();

describe('rows that repeat an id', () => {
  const repeated = [record('first'), record('a'), record('a'), record('a'), state(1), record('a'), record('a')];
  const input = [...repeated, record('b'), record('a'), state(2), record('c'), record('a'), state(3)];

  it.each<[string, Decision, unknown[]]>([
    [
      'deleted',
      'done',
      [
        [4, 0],
        [4, 0],
        [2, 0],
      ],
    ],
    [
      'rejected',
      'rejected',
      [
        [1, 3],
        [1, 3],
        [1, 1],
      ],
    ],
  ])('while it is requested count as it is decided, each in its state: %s', async (_name, decision, counts) => {
    setup.answer = ({ id }, response) => {
      if (id !== 'a') json(response, SUCCESS);
      // After the others, so that all its rows are taken in before.
      else setTimeout(() => (decision === 'done' ? json(response, SUCCESS) : code(response, '40001')), 100);
    };
    const output = await setup.write(input);
    expect(setup.server.ids().filter((id) => id === 'a')).toHaveLength(1);
    expect(statsOf(output)).toEqual(
      counts.map((pair) => {
        const [recordCount, rejectedRecordCount] = pair as [number, number];
        return { recordCount, rejectedRecordCount };
      }),
    );
  });

  it('hold back every state after them when it stays undecided', async () => {
    setup.answer = ({ id }, response) => json(response, id === 'a' ? '<html>' : SUCCESS);
    const output = await setup.write([record('first'), state(0), ...input]);
    expect(output.of('STATE')).toHaveLength(1);
    expect(output.code).not.toBe(0);
  });
});

describe('states before the first deletion', () => {
  it('hold up nothing, however many they are', async () => {
    const states = 100_001;
    const id = (at: number): Step => ({ kind: 'id', stream: 0, at, first: at, decision: undefined, id: `p${at}` });
    const stage = {
      async *steps(): AsyncGenerator<Step> {
        yield id(0);
        for (let at = 1; at <= states; at++) yield { kind: 'state', stream: 0, at, length: 0 };
        yield id(states + 1);
      },
      decide: () => {},
      decision: () => undefined,
    };
    const queue = new DeletionQueue(stage, new Checkpoints(async () => {}));
    const first = await queue.next();
    if (first) queue.resolve(first, 'rejected');
    let second: unknown;
    const waiting = queue.next().then((task) => {
      second = task;
    });
    await Promise.race([waiting, setImmediate().then(() => setImmediate())]);
    expect(second).toMatchObject({ id: `p${states + 1}` });
    await queue.close();
  });
});
