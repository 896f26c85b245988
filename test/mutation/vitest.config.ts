import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import folders from './folders.json' with { type: 'json' };

const tests: Readonly<Record<string, readonly string[]>> = folders;
const folder = process.env.MUTATED_FOLDER ?? '';

/** The project's own tests, of one folder alone; in one thread, where modules are loaded once for all changes. */
export default mergeConfig(
  { ...base, test: { ...base.test, projects: undefined, include: [] } },
  defineConfig({
    test: {
      isolate: false,
      setupFiles: ['test/mutation/load.ts'],
      include: (tests[folder] ?? []).map((of) => `test/${of}{.test.ts,/**/*.test.ts}`),
      // No thread may set the umask of its process.
      exclude: ['test/unit/fs/private-umask.test.ts'],
    },
  }),
);
