import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

const WAITING = `
import { systemClock } from './clock.ts';
import { runUntilStopped } from './process.ts';
await runUntilStopped(() => new Promise(() => {}), systemClock);`;

it('a process whose work waits for something that never comes ends with exit 1', { timeout: 30_000 }, async () => {
  const resolveDir = join(import.meta.dirname, '../../../src/base');
  const { outputFiles } = await build({
    stdin: { contents: WAITING, resolveDir },
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
  });
  const { status } = spawnSync(process.execPath, ['--input-type=module'], {
    input: outputFiles[0].text,
    timeout: 20_000,
  });
  expect(status).toBe(1);
});
