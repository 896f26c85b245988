import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    temporaryRoot: string;
  }
}

/**
 * A folder for the temporary folders of all files of a run, removed when the run has ended. It also has what
 * `temporary-folder.ts` leaves: vitest calls no `afterAll` in a file whose tests are all skipped.
 */
export default function setup(project: TestProject): () => void {
  const root = mkdtempSync(join(tmpdir(), 'dfinery-tests-'));
  project.provide('temporaryRoot', root);
  return () => rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}
