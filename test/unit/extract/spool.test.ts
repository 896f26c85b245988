import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Spool } from '../../../src/extract/spool/spool.ts';

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
