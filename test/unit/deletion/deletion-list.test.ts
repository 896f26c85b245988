import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Decision, DeletionList } from '../../../src/erasure/input/deletion-list.ts';

type Emitted = readonly [string, number, number];

function listWith(emitted: Emitted[]): DeletionList {
  return new DeletionList(async (text, { recordCount, rejectedRecordCount }) => {
    emitted.push([text, recordCount, rejectedRecordCount]);
  });
}

describe('a deletion list', () => {
  it('counts its rows, keeps the first row of each id, and refuses withdrawn requests', () => {
    const list = new DeletionList();
    for (const id of ['b', 'a', null, 'b', 'c']) list.addRow(0, id, 10);
    list.addWithdrawn(0, 'b');
    list.addWithdrawn(0, 'a');
    list.addRow(0, 'a', 10);
    expect(list.ids()).toMatchObject([
      { id: 'a', row: 2 },
      { id: 'c', row: 5 },
    ]);
    expect(list.counts).toEqual({
      received: 8,
      duplicates: 1,
      refused: { missing: 1, withdrawn: 4 },
      ids: 2,
      done_before: 0,
      rejected_before: 0,
    });
  });

  it('has a hash of exactly its ids', () => {
    const digestOf = (...ids: unknown[]) => {
      const list = new DeletionList();
      for (const id of ids) list.addRow(0, id, 10);
      return list.digest;
    };
    expect(digestOf('a', 'b', 'a', '')).toBe(digestOf('b', 'a'));
    expect(digestOf('a')).not.toBe(digestOf('a', 'b'));
    expect(digestOf('ab')).not.toBe(digestOf('a', 'b'));
  });

  it('releases states once their ids are decided, and holds them back for an undecided id', async () => {
    for (const [decision, states] of [
      ['done', 150_001],
      ['undecided', 0],
    ] as const) {
      const emitted: Emitted[] = [];
      const list = listWith(emitted);
      list.addRow(0, 'a', 10);
      for (let n = 0; n <= 150_000; n++) list.addState(0, `s${n}`);
      list.start();
      list.decide('a', decision);
      await list.emitted();
      expect(emitted).toHaveLength(states);
    }
  });

  it('emits each state once all rows before it are decided, with the counts of its stream since the last one', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('id' as const), stream: fc.nat(2), id: fc.constantFrom('a', 'b', 'c', 'd', 'e') }),
      fc.record({ kind: fc.constant('refused' as const), stream: fc.nat(2) }),
      fc.record({ kind: fc.constant('state' as const), stream: fc.option(fc.nat(2), { nil: undefined }) }),
    );
    const decisions = fc.record({
      a: fc.constantFrom<Decision>('done', 'rejected', 'undecided'),
      b: fc.constantFrom<Decision>('done', 'rejected'),
      c: fc.constant<Decision>('done'),
      d: fc.constantFrom<Decision>('done', 'rejected', 'undecided'),
      e: fc.constant<Decision>('rejected'),
    });
    const order = fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e'] as const, { minLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        decisions,
        order,
        fc.nat(5),
        async (steps, outcome, ids, startAt) => {
          const emitted: Emitted[] = [];
          const list = listWith(emitted);
          for (const [n, one] of steps.entries()) {
            if (one.kind === 'id') list.addRow(one.stream, one.id, 10);
            else if (one.kind === 'refused') list.addRow(one.stream, ' ', 10);
            else list.addState(one.stream, `s${n}`);
          }
          if (startAt === 0) list.start();
          for (const [n, id] of ids.entries()) {
            list.decide(id, outcome[id]);
            if (n + 1 === startAt) list.start();
          }
          await list.emitted();
          const expected: Emitted[] = [];
          const since = new Map<number, [number, number]>();
          for (const [n, one] of steps.entries()) {
            if (one.kind === 'state') {
              const streams = one.stream === undefined ? [...since.keys()] : [one.stream];
              const sums = streams.map((stream) => since.get(stream) ?? [0, 0]);
              expected.push([`s${n}`, sums.reduce((sum, [d]) => sum + d, 0), sums.reduce((sum, [, r]) => sum + r, 0)]);
              for (const stream of streams) since.delete(stream);
              continue;
            }
            const decision = one.kind === 'id' ? outcome[one.id as keyof typeof outcome] : 'rejected';
            if (decision === 'undecided') break;
            const [d, r] = since.get(one.stream) ?? [0, 0];
            since.set(one.stream, decision === 'done' ? [d + 1, r] : [d, r + 1]);
          }
          expect(emitted).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });
});
