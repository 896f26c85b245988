import { defineConfig, mergeConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import base from '../../vitest.config.ts';
import folders from './folders.json' with { type: 'json' };

const tests: Readonly<Record<string, readonly string[]>> = folders;
const list = tests[process.env.MUTATED_FOLDER ?? ''] ?? [];

/** The files in the order of the list: the first test that notices a change ends its run, so quick ones come first. */
class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) =>
      list.findIndex((of) => moduleId.includes(`/test/${of.replace(/\*.*$/, '')}`));
    return files.toSorted((a, b) => place(a) - place(b));
  }
}

/** The project's own tests, of one folder alone; in one thread, where modules are loaded once for all changes. */
export default mergeConfig(
  { ...base, test: { ...base.test, projects: undefined, include: [] } },
  defineConfig({
    test: {
      isolate: false,
      setupFiles: ['test/mutation/load.ts'],
      sequence: { sequencer: InOrder },
      include: list.map((of) => `test/${of}{.test.ts,/**/*.test.ts}`),
      // No thread may set the umask of its process.
      exclude: ['test/unit/fs/private-umask.test.ts'],
    },
  }),
);
