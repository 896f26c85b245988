import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { OutputQueue } from '../../../src/base/output-queue.ts';

it('a stream that fails and stays open lets nobody wait', { timeout: 5_000 }, async () => {
  const full = new Writable({
    autoDestroy: false,
    write: (_chunk, _encoding, callback) => setImmediate(() => callback(new Error('ENOSPC'))),
  });
  const output = new OutputQueue(full);
  output.queue('rows that the disk does not take\n');
  await new Promise((resolve) => {
    full.once('error', resolve);
    full.once('drain', resolve);
    // Gathered before the failure, and handed on after it.
    setImmediate(() => output.queue('more rows\n'));
  });
  await expect(output.drain()).rejects.toThrow('ENOSPC');
  await expect(output.queueAndDrain('a summary\n')).rejects.toThrow('ENOSPC');
});
