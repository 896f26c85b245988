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
  it('stays bounded: it drops the oldest debug lines, then the oldest other lines, and never those marked to be kept', async () => {
    const { out, goOn, lines } = stillReader();
    const queue = new OutputQueue(out, leftOut);
    queue.add(LINE.repeat(300), 'kept');
    await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 2_000; i++) {
      queue.add(`debug ${i} ${LINE}`, 'debug');
      if (i % 10 === 0) queue.add(`info ${i}\n`, 'log');
      if (i % 100 === 0) queue.add(`kept ${i}\n`, 'kept');
    }
    goOn();
    await queue.drain();
    const said = lines();
    const debug = said.filter((line) => line.startsWith('debug'));
    const missing = 2_000 - debug.length;
    expect(missing).toBeGreaterThan(900);
    expect(debug[0]).toMatch(new RegExp(`^debug ${missing} `));
    expect(said.filter((line) => line.startsWith('info'))).toHaveLength(200);
    expect(said.filter((line) => line.startsWith('kept'))).toHaveLength(20);
    expect(said.filter((line) => line.startsWith('left out'))).toEqual([`left out: ${missing}`]);
  });

  it('drops its own lines when there is no debug line left', async () => {
    const { out, goOn, lines } = stillReader();
    const queue = new OutputQueue(out, leftOut);
    queue.add(LINE.repeat(300), 'kept');
    await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 3_000; i++) queue.add(`info ${i} ${LINE}`, 'log');
    goOn();
    await queue.drain();
    expect(lines().filter((line) => line.startsWith('info')).length).toBeLessThan(1_100);
    expect(lines().at(-1)).toMatch(/^info 2999 /);
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
