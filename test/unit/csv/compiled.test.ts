import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

describe('the compiled module', () => {
  it('equals the compiled sources', { timeout: 120_000 }, () => {
    const compiled = execFileSync(process.execPath, ['assembly/compile.mjs', '--print'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect(readFileSync(join(ROOT, 'src/csv/wasm/csv-module.ts'), 'utf8')).toBe(compiled);
  });
});
