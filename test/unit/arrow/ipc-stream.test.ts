import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { recordBatches } from '../../../src/targets/arrow/ipc-stream.ts';

const openFilesIn = (path: string): string[] =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(join('/proc/self/fd', fd)).startsWith(path);
    } catch {
      // The list itself was open while it was read.
      return false;
    }
  });

const folder = mkdtempSync(join(tmpdir(), 'dfinery-ipc-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.runIf(process.platform === 'linux')('a typed file that cannot be read does not stay open', async () => {
  const path = join(folder, 'cut.parquet');
  writeFileSync(path, 'PAR1, cut');
  await expect(recordBatches(path, 1).next()).rejects.toBeDefined();
  expect(openFilesIn(folder)).toEqual([]);
});
