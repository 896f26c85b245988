import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../../src/deletion/stage/stage.ts';
import { StageWriter } from '../../../src/deletion/stage/stage-writer.ts';
import fc from '../../support/property.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-stage-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sha = (id: Buffer) => createHash('sha256').update(id).digest();
/** Few different first bytes: what a good hash would hide. */
const crowded = (id: Buffer) => Buffer.concat([Buffer.of(id.length % 2), sha(id).subarray(1)]);
const eachOf = (hashes: Iterable<Buffer>) => async (listener: (hash: Buffer) => void) => {
  for (const hash of hashes) listener(hash);
};

const wellFormed = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((text) => text !== '');
const rows = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('id' as const),
        id: fc.oneof(fc.constantFrom('a', 'b', 'c'), wellFormed),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('refused' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('state' as const), text: fc.string({ maxLength: 30 }) }) },
  ),
  { maxLength: 200 },
);

describe('the stage', () => {
  it('gives the input back in its order, with the first of every id', async () => {
    await fc.assert(
      fc.asyncProperty(rows, fc.array(wellFormed, { maxLength: 5 }), async (input, doneIds) => {
        const done = new Set([...doneIds, 'b']);
        const writer = new StageWriter(folder);
        for (const row of input) {
          if (row.kind === 'id') writer.addId(3, row.id);
          else if (row.kind === 'refused') writer.addRefused(4, 'blank');
          else writer.addState(undefined, row.text);
        }
        const stage = writer.finish();
        await stage.markDone(crowded, eachOf([...done].map((id) => crowded(Buffer.from(id)))));
        try {
          const ids = input.flatMap((row) => (row.kind === 'id' ? [row.id] : []));
          const unique = new Set(ids);
          expect(stage.counts).toMatchObject({
            accepted: ids.length,
            unique: unique.size,
            duplicates: ids.length - unique.size,
            done: [...unique].filter((id) => done.has(id)).length,
          });
          const steps: Step[] = [];
          for await (const step of stage.steps()) steps.push(step);
          expect(steps.map(({ kind }) => kind)).toEqual(input.map(({ kind }) => kind));
          const numbers = new Map(
            steps.flatMap((step) => (step.kind === 'id' ? [step.at] : [])).map((at, i) => [at, i]),
          );
          for (const [i, step] of steps.entries()) {
            const row = input[i];
            if (step.kind === 'id' && row.kind === 'id') {
              expect(step).toMatchObject({ id: row.id, stream: 3 });
              expect(step.decision).toBe(done.has(row.id) ? 'done' : undefined);
              expect(numbers.get(step.first)).toBe(ids.indexOf(row.id));
            }
            if (step.kind === 'state' && row.kind === 'state') {
              expect((await stage.state(step.at, step.length)).toString()).toBe(Buffer.from(row.text).toString());
            }
          }
        } finally {
          stage.close();
        }
      }),
      { numRuns: 40 },
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it('refuses what was asked for and taken back later, unless it was asked for again', async () => {
    const asks = fc.array(fc.record({ id: fc.constantFrom('a', 'b', 'c'), isBack: fc.boolean() }), {
      maxLength: 30,
    });
    await fc.assert(
      fc.asyncProperty(asks, async (input) => {
        const writer = new StageWriter(folder);
        for (const { id, isBack } of input) {
          if (isBack) writer.addWithdrawn(1, id);
          else writer.addId(1, id);
        }
        const stage = writer.finish();
        try {
          const last = new Map(input.map(({ id, isBack }) => [id, isBack]));
          const wanted = input.map(({ id, isBack }) => (isBack || last.get(id) ? 'refused' : id));
          const steps: Step[] = [];
          for await (const step of stage.steps()) steps.push(step);
          expect(steps.map((step) => (step.kind === 'id' ? step.id : step.kind))).toEqual(wanted);
          const ids = wanted.filter((id) => id !== 'refused');
          const unique = new Set(ids).size;
          expect(stage.counts).toMatchObject({
            received: input.length,
            accepted: ids.length,
            unique,
            duplicates: ids.length - unique,
          });
          expect(stage.counts.refused.get('withdrawn') ?? 0).toBe(input.length - ids.length);
        } finally {
          stage.close();
        }
      }),
    );
  });

  it('compares 90,000 ids exactly, over many blocks, in bounded memory', async () => {
    const writer = new StageWriter(folder);
    for (let i = 0; i < 90_000; i++) writer.addId(0, `id-${i % 60_000}`);
    expect(readdirSync(folder), 'nothing of it has a name').toEqual([]);
    const stage = writer.finish();
    expect(stage.counts).toMatchObject({ accepted: 90_000, unique: 60_000, duplicates: 30_000 });
    const firsts: number[] = [];
    let [wrong, number] = [0, 0];
    for await (const step of stage.steps()) {
      if (step.kind !== 'id') continue;
      if (number < 60_000) firsts.push(step.at);
      if (step.first !== firsts[number++ % 60_000]) wrong++;
    }
    expect(wrong).toBe(0);
    stage.close();
  });

  it('keeps a row longer than its buffers', async () => {
    const long = 'x'.repeat(700_000);
    const writer = new StageWriter(folder);
    for (const id of ['a', long, 'b', long]) writer.addId(0, id);
    const stage = writer.finish();
    const ids: string[] = [];
    for await (const step of stage.steps()) if (step.kind === 'id') ids.push(step.id);
    expect(ids).toEqual(['a', long, 'b', long]);
    stage.close();
  });
});
