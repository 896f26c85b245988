import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

describe('the compiled module', () => {
  it.each(['columns', 'csv', 'edit', 'observe'])('%s is what its source compiles to', { timeout: 120_000 }, (name) => {
    const compiled = execFileSync(process.execPath, ['assembly/compile.mjs', '--print', name], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect(readFileSync(join(ROOT, `src/csv/wasm/${name}-module.ts`), 'utf8')).toBe(compiled);
  });
});
