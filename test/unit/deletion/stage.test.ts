import { createHash } from 'node:crypto';
import fs, { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { REFUSALS } from '../../../src/deletion/input/refusal.ts';
import type { Stage, Step } from '../../../src/deletion/stage/stage.ts';
import { StageWriter } from '../../../src/deletion/stage/stage-writer.ts';
import { openFilesIn } from '../../support/deletion/plans.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const BUFFER_BYTES = 256 * 1024;
const HEAD_BYTES = 14;
let folder = '';
const stages: Stage[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-stage-'));
});
afterEach(() => {
  for (const stage of stages.splice(0)) stage.close();
  rmSync(folder, { recursive: true });
});

function staged(fill: (writer: StageWriter) => void): Stage {
  const writer = new StageWriter(folder);
  fill(writer);
  const stage = writer.finish();
  stages.push(stage);
  return stage;
}
const withIds = (ids: readonly string[]) =>
  staged((writer) => {
    for (const id of ids) writer.addId(0, id);
  });

async function stepsOf(stage: Stage): Promise<Step[]> {
  const all: Step[] = [];
  for await (const step of stage.steps()) all.push(step);
  return all;
}

const openFiles = () => openFilesIn(folder);
const none = async () => {};
const sameHash = (id: Buffer) => Buffer.concat([id, Buffer.alloc(32)]).subarray(0, 32);

describe.runIf(process.platform === 'linux')('the files of a stage', () => {
  it('have no name, are closed to others, and are given back as soon as they are of no more use', async () => {
    const writer = new StageWriter(folder);
    writer.addId(0, 'a');
    expect(readdirSync(folder)).toEqual([]);
    expect(openFiles()).toHaveLength(2);
    for (const path of openFiles()) expect(statSync(path).mode & 0o777).toBe(0o600);
    const stage = writer.finish();
    expect(openFiles()).toHaveLength(1);
    await stage.markDone(sameHash, none);
    expect(openFiles()).toHaveLength(1);
    await expect(stage.markDone(sameHash, () => Promise.reject(new Error('the ledger is broken')))).rejects.toThrow(
      'the ledger is broken',
    );
    expect(openFiles()).toHaveLength(1);
    stage.close();
    expect(openFiles()).toEqual([]);
  });

  it('are given back where an input cannot be read to its end', () => {
    const writer = new StageWriter(folder);
    writer.addId(0, 'a');
    writer.discard();
    expect(openFiles()).toEqual([]);
  });

  it('end the run when bytes are missing, whatever is read of them', async () => {
    const stage = staged((writer) => {
      writer.addId(0, 'somebody');
      writer.addState(0, '{"a":1}');
    });
    const [id, state] = await stepsOf(stage);
    if (id.kind !== 'id' || state.kind !== 'state') throw new Error('not what was staged');
    const [path] = openFiles();
    const size = state.at + HEAD_BYTES + state.length;
    truncateSync(path, size - 1);
    await expect(stepsOf(stage)).rejects.toThrow('shorter than what was written');
    await expect(stage.state(state.at, state.length)).rejects.toThrow('shorter than what was written');
    truncateSync(path, 0);
    expect(() => stage.decision(id.first)).toThrow('shorter than what was written');
    await expect(stepsOf(stage)).rejects.toThrow('shorter than what was written');
  });

  it('end the run when a block of ids is cut', () => {
    const writer = new StageWriter(folder);
    for (let n = 0; n < 90_000; n++) writer.addId(0, `id-${n}`);
    for (const path of openFiles()) truncateSync(path, statSync(path).size - 1);
    expect(() => writer.finish()).toThrow('A block of ids is cut');
    writer.discard();
  });
});

describe('a stage', () => {
  it.each([
    ['that just fit', [BUFFER_BYTES - HEAD_BYTES, 1, 1]],
    ['one byte too long', [BUFFER_BYTES - HEAD_BYTES + 1, 1, 1]],
    ['one byte too short', [BUFFER_BYTES - HEAD_BYTES - 1, 1, 1]],
    ['that leave room for a head and no more', [BUFFER_BYTES - 2 * HEAD_BYTES, 1, 1]],
    ['that fill it together', [1_000, BUFFER_BYTES - 1_000 - 2 * HEAD_BYTES, 1]],
    ['that are one byte too long together', [1_000, BUFFER_BYTES - 999 - 2 * HEAD_BYTES, 1]],
    ['that are longer than several', [5, 3 * BUFFER_BYTES, 5]],
  ])('gives ids back that meet the end of its buffer: %s', async (_name, lengths) => {
    const ids = lengths.map((length, n) => String(n).repeat(length));
    const stage = staged((writer) => {
      for (const id of ids) {
        writer.addId(0, id);
        writer.addState(1, `"${id}"`);
      }
      writer.addId(2, ids[0]);
    });
    const steps = await stepsOf(stage);
    const found = steps.flatMap((step) => (step.kind === 'id' ? [[step.stream, step.first, step.id]] : []));
    const first = steps[0].kind === 'id' ? steps[0].at : undefined;
    expect(found.map(([stream, , id]) => [stream, id])).toEqual([...ids.map((id) => [0, id]), [2, ids[0]]]);
    expect(found.at(-1)?.[1]).toBe(first);
    const states = await Promise.all(
      steps.flatMap((step) => (step.kind === 'state' ? [stage.state(step.at, step.length)] : [])),
    );
    expect(states.map(String)).toEqual(ids.map((id) => `"${id}"`));
  });

  it('takes no id for decided whatever its buffer held before', async () => {
    // Bytes that would be decisions, where the steps of the next buffer have theirs.
    const [done, rejected] = ['\u0001', '\u0002'].map((byte) => byte.repeat(BUFFER_BYTES - HEAD_BYTES));
    const stage = withIds([done, 'a', 'b', 'c', rejected, 'd', 'e', 'f']);
    const steps = await stepsOf(stage);
    expect(steps.map((step) => step.kind === 'id' && step.decision)).toEqual(Array(8).fill(undefined));
    expect(steps.map((step) => step.kind === 'id' && stage.decision(step.first))).toEqual(Array(8).fill(undefined));
  });

  it('tells a state of one stream from one of all', async () => {
    const stage = staged((writer) => {
      for (const stream of [0, 7, undefined]) writer.addState(stream, '{}');
    });
    expect((await stepsOf(stage)).map((step) => step.kind === 'state' && step.stream)).toEqual([0, 7, undefined]);
    expect(stage.counts).toEqual({ received: 0, accepted: 0, duplicates: 0, refused: new Map(), unique: 0, done: 0 });
  });

  it('keeps every reason for which rows are refused, and counts them in the order of reports', async () => {
    const arrived = [...REFUSALS, ...REFUSALS].reverse();
    const stage = staged((writer) => {
      for (const refusal of arrived) writer.addRefused(3, refusal);
      writer.addRefused(3, 'blank');
    });
    const steps = await stepsOf(stage);
    expect(steps).toEqual([...arrived, 'blank'].map((refusal) => ({ kind: 'refused', stream: 3, refusal })));
    expect([...stage.counts.refused]).toEqual(REFUSALS.map((refusal) => [refusal, refusal === 'blank' ? 3 : 2]));
    expect(stage.counts).toMatchObject({ received: 2 * REFUSALS.length + 1, accepted: 0, unique: 0 });
  });

  it('has the same digest for the same ids in any order, and for no others', () => {
    const ids = Array.from({ length: 3_000 }, (_, n) => `id-${n}`);
    const { digest } = withIds(ids);
    const sorted = ids.map((id) => createHash('sha256').update(id).digest()).sort(Buffer.compare);
    expect(digest).toBe(createHash('sha256').update(Buffer.concat(sorted)).digest('hex'));
    expect(withIds([...ids].reverse()).digest).toBe(digest);
    expect(withIds([...ids.slice(1_500), ...ids]).digest).toBe(digest);
    expect(withIds(ids.slice(1)).digest).not.toBe(digest);
    const withdrawn = staged((writer) => {
      for (const id of [...ids, 'more']) writer.addId(0, id);
      writer.addWithdrawn(0, 'more');
      writer.addRefused(0, 'blank');
    });
    expect(withdrawn.digest).toBe(digest);
  });

  it('takes ids of the resumed run for done, and neither withdrawn ones nor those of others', async () => {
    const stage = staged((writer) => {
      for (const id of ['a', 'b', 'gone', 'a', 'c']) writer.addId(0, id);
      writer.addWithdrawn(0, 'gone');
      writer.addWithdrawn(0, undefined);
    });
    await stage.markDone(sameHash, async (listener) => {
      for (const id of ['a', 'a', 'gone', 'stranger']) listener(sameHash(Buffer.from(id)));
    });
    expect(stage.counts).toMatchObject({ received: 7, accepted: 4, unique: 3, duplicates: 1, done: 1 });
    expect(stage.counts.refused).toEqual(new Map([['withdrawn', 3]]));
    const steps = await stepsOf(stage);
    expect(steps.map((step) => (step.kind === 'id' ? `${step.id} ${step.decision}` : step.kind))).toEqual([
      'a done',
      'b undefined',
      'refused',
      'a done',
      'c undefined',
      'refused',
      'refused',
    ]);
  });

  it('takes only ids for done, not what is written like one', async () => {
    const stage = staged((writer) => {
      writer.addId(0, 'gone');
      writer.addState(0, 'a');
      writer.addId(0, 'b');
      writer.addWithdrawn(0, 'gone');
    });
    await stage.markDone(sameHash, async (listener) => listener(sameHash(Buffer.from('a'))));
    expect(stage.counts).toMatchObject({ unique: 1, done: 0 });
    // The first step, which was taken back: nobody asks for it.
    expect(stage.decision(0)).toBe('rejected');
  });

  it('says which folder it cannot use', () => {
    expect(() => new StageWriter(join(folder, 'none'))).toThrow(
      expect.objectContaining({ name: 'Failure', message: expect.stringContaining(`temporary folder ${folder}`) }),
    );
  });

  it('remembers each decision for every row of the id', async () => {
    const stage = withIds(['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']);
    const firsts = (await stepsOf(stage)).slice(0, 4).map((step) => (step.kind === 'id' ? step.at : -1));
    stage.decide(firsts[0], 'done');
    stage.decide(firsts[1], 'rejected');
    stage.decide(firsts[2], 'undecided');
    const decisions = ['done', 'rejected', 'undecided', undefined];
    expect(firsts.map((first) => stage.decision(first))).toEqual(decisions);
    const steps = await stepsOf(stage);
    expect(steps.map((step) => step.kind === 'id' && step.decision)).toEqual([...decisions, ...decisions]);
  });
});

describe('a disk that fails', () => {
  const failing = (cause: Error, message: string, work: () => unknown) => {
    const told = { name: 'Failure', kind: 'transient', cause, message: expect.stringContaining(message) };
    const fail = () => {
      throw cause;
    };
    return withCall(fs, 'writeSync', fail, () => expect(work).toThrow(expect.objectContaining(told)));
  };

  it('while the input is staged has cost nothing, which is said', async () => {
    const writer = new StageWriter(folder);
    await failing(systemError('ENOSPC'), '; nothing was deleted.', () => writer.addId(0, 'x'.repeat(BUFFER_BYTES)));
    writer.discard();
  });

  it.each([
    [systemError('EIO'), 'EIO'],
    [new Error('odd'), 'no code'],
  ])('while decisions are noted stops the run, to be run again: %s', async (error, code) => {
    const stage = withIds(['a']);
    await failing(error, `could not be kept up to date (${code})`, () => stage.decide(0, 'done'));
    expect(stage.decision(0)).toBeUndefined();
  });
});
