import { describe, expect, it } from 'vitest';
import { Checkpoints, type PendingRows } from '../../../src/deletion/execute/checkpoints.ts';
import type { Decision } from '../../../src/deletion/stage/stage.ts';
import fc from '../../support/property.ts';

type Event =
  | { kind: 'row'; stream: number; decision: Decision; later: number }
  | { kind: 'state'; stream: number | undefined };

const decision = fc.constantFrom<Decision>('done', 'done', 'done', 'rejected', 'undecided');
const events = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('row' as const), stream: fc.nat(2), decision, later: fc.nat(5) }),
    fc.record({ kind: fc.constant('state' as const), stream: fc.option(fc.nat(2), { nil: undefined }) }),
  ),
  { maxLength: 60 },
);

/** What must be released once everything is decided, told as simply as can be. */
function expected(all: readonly Event[]): unknown[] {
  const out: unknown[] = [];
  let since: { stream: number; decision: Decision }[] = [];
  for (const [i, event] of all.entries()) {
    if (event.kind === 'row') since.push(event);
    else {
      if (all.slice(0, i).some((one) => one.kind === 'row' && one.decision === 'undecided')) break;
      const mine = since.filter(({ stream }) => event.stream === undefined || stream === event.stream);
      since = since.filter((row) => !mine.includes(row));
      out.push([
        i,
        mine.filter((row) => row.decision === 'done').length,
        mine.filter((row) => row.decision === 'rejected').length,
      ]);
    }
  }
  return out;
}

describe('states', () => {
  it('are released in order, with exact counts, never before a row before them is decided [R50]', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (all) => {
        const released: unknown[] = [];
        const open = new Set<number>();
        const checkpoints = new Checkpoints(async ({ at }, { recordCount, rejectedRecordCount }) => {
          released.push([at, recordCount, rejectedRecordCount]);
        });
        checkpoints.start();
        const waiting: { rows: number[]; due: number; pending: PendingRows; decision: Decision }[] = [];
        const settle = (now: number) => {
          for (const one of waiting.filter(({ due }) => due <= now)) {
            waiting.splice(waiting.indexOf(one), 1);
            for (const row of one.rows) open.delete(row);
            checkpoints.resolve(one.pending, one.decision);
          }
        };
        for (const [at, event] of all.entries()) {
          settle(at);
          if (event.kind === 'state') checkpoints.addState({ stream: event.stream, at, length: 0 });
          else if (event.later === 0) checkpoints.add(event.stream, event.decision);
          else {
            open.add(at);
            const { decision, stream } = event;
            const same = waiting.findLast((one) => one.decision === decision);
            if (same && checkpoints.extend(same.pending, stream)) same.rows.push(at);
            else waiting.push({ rows: [at], due: at + event.later, pending: checkpoints.addPending(stream), decision });
          }
          await checkpoints.flushed();
          for (const [state] of released as [number][]) expect([...open].some((row) => row < state)).toBe(false);
        }
        settle(Number.POSITIVE_INFINITY);
        await checkpoints.flushed();
        expect(released).toEqual(expected(all));
      }),
      { numRuns: 300 },
    );
  });

  it('are held until something was accepted', async () => {
    let released = 0;
    const checkpoints = new Checkpoints(async () => {
      released++;
    });
    checkpoints.add(0, 'rejected');
    checkpoints.addState({ stream: 0, at: 0, length: 0 });
    await checkpoints.flushed();
    expect(released).toBe(0);
    checkpoints.start();
    await checkpoints.flushed();
    expect(released).toBe(1);
  });
});
