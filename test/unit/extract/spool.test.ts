import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Spool } from '../../../src/extract/spool/spool.ts';

/** As of a FileHandle. */
type Write = (this: unknown, bytes: Uint8Array, at: number, length: number) => Promise<{ bytesWritten: number }>;

/** Removes a folder again and again, as runs that end do, for a minute at most. */
const REMOVER = `
  const { rmdirSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.postMessage('begun');
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    try { rmdirSync(workerData); } catch {}
    Atomics.wait(pause, 0, 0, 1);
  }
`;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-spool-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('a run begins while others remove the empty folder under its hands', async () => {
  const { folder } = await closed(await Spool.open(root, 'a question', 'a print', systemClock));
  const remover = new Worker(REMOVER, { eval: true, workerData: folder });
  try {
    await new Promise((resolve) => remover.once('message', resolve));
    for (let i = 0; i < 200; i++) await closed(await Spool.open(root, 'a question', 'a print', systemClock));
  } finally {
    await remover.terminate();
  }
  expect(readdirSync(root)).toEqual([]);
});

async function closed(spool: Spool): Promise<Spool> {
  await spool.close();
  return spool;
}

it('a disk that takes less than it is given at a time gets all of it [R485]', async () => {
  const probe = await open(join(root, 'probe'), 'w');
  const handle = Object.getPrototypeOf(probe) as { write: Write };
  await probe.close();
  const { write } = handle;
  handle.write = function (bytes, at, length) {
    return write.call(this, bytes, at, Math.ceil(length / 2));
  };
  try {
    const spool = await Spool.open(root, 'a question', 'a print', systemClock);
    const writer = await spool.create(spool.nextId());
    const text = 'a row of a day\n'.repeat(1_000);
    await writer.write(Buffer.from(text));
    await writer.finish();
    expect(readFileSync(writer.path, 'utf8')).toBe(text);
    await spool.close();
  } finally {
    handle.write = write;
  }
});
