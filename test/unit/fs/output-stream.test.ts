import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { openOutputStream } from '../../../src/fs/output-stream.ts';
import { newFolder } from '../../support/new-folder.ts';

let dir: string;
beforeEach(() => {
  dir = newFolder();
});

/** Any descriptor stands for stdout or stderr here. */
const streamOn = (fd: number) => openOutputStream(fd as 2);

describe('the output stream of a descriptor', () => {
  it('writes to a file and leaves it open', async () => {
    const fd = openSync(join(dir, 'file'), 'w');
    const out = streamOn(fd);
    out.end('all of it');
    await finished(out);
    writeSync(fd, ', and more');
    closeSync(fd);
    expect(readFileSync(join(dir, 'file'), 'utf8')).toBe('all of it, and more');
  });

  it.runIf(process.platform === 'linux')(
    'of a pipe never blocks, reads nothing, and keeps no process alive',
    async () => {
      const path = join(dir, 'pipe');
      execFileSync('mkfifo', [path]);
      const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      const kept = process.getActiveResourcesInfo().length;
      const out = streamOn(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
      expect([out instanceof Socket, out.writable, (out as Socket).readable]).toEqual([true, true, false]);
      expect(process.getActiveResourcesInfo()).toHaveLength(kept);
      await new Promise<void>((resolve, reject) => {
        out.once('error', reject);
        out.write('a line', () => resolve());
      });
      const buffer = Buffer.alloc(100);
      expect(buffer.toString('utf8', 0, readSync(reader, buffer))).toBe('a line');
      out.destroy();
      closeSync(reader);
    },
  );
});
