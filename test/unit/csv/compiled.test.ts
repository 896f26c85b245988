import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

describe('the compiled module', () => {
  it('equals the compiled sources', { timeout: 120_000 }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'dfinery-elt-compiled-'));
    try {
      const compiled = join(folder, 'csv.wasm');
      execFileSync(process.execPath, ['assembly/compile.mjs', compiled], { cwd: ROOT });
      expect(readFileSync(join(ROOT, 'src/cells/csv/csv.wasm')).equals(readFileSync(compiled))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
