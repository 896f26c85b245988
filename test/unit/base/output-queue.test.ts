import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { OutputQueue } from '../../../src/base/output-queue.ts';

const LINE = `${'x'.repeat(1_023)}\n`;
const leftOut = (count: number) => `left out: ${count}\n`;

/** A reader that stands still until it is told to go on. */
function stillReader() {
  let text = '';
  let isGoing = false;
  const held: (() => void)[] = [];
  const out = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, done) {
      const take = () => {
        text += chunk.toString();
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
  return { out, goOn, lines: () => text.split('\n').slice(0, -1) };
}

describe('a log whose reader is blocked', () => {
  it('stays bounded: it drops lines of the log, says how many, and keeps all others', async () => {
    const { out, goOn, lines } = stillReader();
    const queue = new OutputQueue(out, leftOut);
    for (let i = 0; i < 5_000; i++) {
      queue.add(`info ${i} ${LINE}`, 'log');
      if (i % 100 === 0) queue.add(`kept ${i}\n`, 'kept');
    }
    goOn();
    await queue.drain();
    queue.add('last\n', 'log');
    await queue.drain();
    const written = lines();
    const info = written.filter((line) => line.startsWith('info')).length;
    expect(info).toBeLessThan(2_100);
    expect(written.filter((line) => line.startsWith('kept'))).toHaveLength(50);
    const dropped = written.filter((line) => line.startsWith('left out')).map((line) => Number(line.split(' ')[2]));
    expect(dropped.reduce((sum, one) => sum + one, info)).toBe(5_000);
    expect(written.at(-1)).toBe('last');
  });

  it('resolves when a line was written, and rejects when it was not', async () => {
    const { out, goOn } = stillReader();
    const queue = new OutputQueue(out, leftOut);
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
    queue.add('five\n', 'kept');
    expect(queue.isEmpty).toBe(true);
  });
});
