import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { recordBatches } from '../../../src/targets/arrow/ipc-stream.ts';
import { openFilesIn } from '../../support/deletion/plans.ts';

const folder = mkdtempSync(join(tmpdir(), 'dfinery-ipc-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.runIf(process.platform === 'linux')('a typed file that cannot be read does not stay open', async () => {
  const path = join(folder, 'cut.parquet');
  writeFileSync(path, 'PAR1, cut');
  await expect(recordBatches(path, 1).next()).rejects.toBeDefined();
  expect(openFilesIn(folder)).toEqual([]);
});
