import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { OutputQueue } from '../../../src/base/output-queue.ts';

/** A reader that stands still until it is told to go on. */
function stillReader() {
  let isGoing = false;
  const held: (() => void)[] = [];
  const out = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      const take = () => {
        done();
      };
      if (isGoing) take();
      else held.push(take);
    },
  });
  const goOn = () => {
    isGoing = true;
    for (const take of held.splice(0)) take();
  };
  return { out, goOn };
}

describe('an output whose reader is blocked', () => {
  it('resolves when a line was written, and rejects when it was not', async () => {
    const { out, goOn } = stillReader();
    const queue = new OutputQueue(out);
    let isTaken = false;
    const first = queue.write('one\n').then(() => {
      isTaken = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isTaken).toBe(false);
    goOn();
    await first;
    const gone = Object.assign(new Error('gone'), { code: 'EPIPE' });
    const lost = queue.write('two\n');
    out.destroy(gone);
    await expect(Promise.all([lost, queue.write('three\n')])).rejects.toThrow();
    await expect(queue.write('four\n')).rejects.toBe(gone);
    await expect(queue.drain()).rejects.toBe(gone);
    queue.add('five\n');
    expect(queue.isSettled).toBe(true);
  });
});
