import { dirname, resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification, type Vitest } from 'vitest/node';
import { validatorModule } from './connectors/validator.mjs';

/** Variables of the shell that would change a test: proxies, tokens, object stores, a Node that trusts any certificate. */
const FOREIGN =
  /^(https?|no|all)_proxy$|^node_(use_env_proxy|tls_reject_unauthorized|extra_ca_certs)$|^aws_|^dfinery_(?!cli$)/i;
for (const name of Object.keys(process.env)) if (FOREIGN.test(name)) delete process.env[name];

/** Tests that take long, that start or kill processes, or that change the file system, the folders or the clock. */
const FAULTS = [
  'test/simulation/**/*.test.ts',
  'test/unit/targets/!(steps).test.ts',
  'test/conformance/cli/!(json-members|status).test.ts',
  'test/conformance/{destination,source}/process.test.ts',
  'test/unit/erasure/{forget-places,profiles}.test.ts',
];

/** The order of steps is always tried. That each of them may be the last is tried whole only with the faults. */
const STEPS = 'test/unit/{erasure,targets}/steps.test.ts';

/** Names the tests that left themselves out, in the form that `.ci/run` counts; not those that `-t` leaves out. */
class SkippedTests implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#vitest?.getGlobalTestNamePattern() !== undefined) return;
    for (const { relativeModuleId, children } of modules) {
      for (const test of children.allTests('skipped')) {
        const { state, note = 'not on this system' } = { note: undefined, ...test.result() };
        if (state === 'skipped') process.stdout.write(`${relativeModuleId}: skipped: ${test.fullName} (${note})\n`);
      }
    }
  }
}

/** Starts the longest file first, so that no worker waits for it at the end; vitest knows durations of earlier runs alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.endsWith('/simulation.test.ts');
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  plugins: [
    {
      name: 'sql-as-text',
      transform: (text, id) => (id.endsWith('.sql') ? `export default ${JSON.stringify(text)};` : undefined),
    },
    {
      name: 'validators',
      enforce: 'pre',
      resolveId: (path, from = '') => (path.endsWith('.validator') ? resolve(dirname(from), path) : undefined),
      load: (id) => (id.endsWith('.validator') ? validatorModule(id) : undefined),
    },
  ],
  test: {
    // Only a test that hangs takes so long, on however slow a machine: none proves anything by these.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
    globalSetup: 'test/support/temporary-root.ts',
    setupFiles: 'test/support/temporary-folder.ts',
    expect: { poll: { timeout: 300_000 } },
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Many tests wait for child processes: one worker a core, where the default leaves one core out.
    maxWorkers: '100%',
    reporters: ['default', new SkippedTests()],
    projects: [
      // A worker keeps the modules that it has loaded for its next file: a third of the processor time.
      {
        extends: true,
        test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: FAULTS, isolate: false },
      },
      // Killed and starved processes depend on the load of the machine: what fails twice has failed.
      {
        extends: true,
        test: {
          name: 'faults',
          include: [...FAULTS, STEPS],
          env: { TRIES_EVERY_END: 'true' },
          isolate: true,
          retry: 1,
        },
      },
    ],
  },
});
