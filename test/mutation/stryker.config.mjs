import { mutatedIn, reportOf, shareOf } from './folders.mjs';

const folder = process.env.MUTATED_FOLDER;
const report = reportOf(folder);

/** Stryker's configuration for one folder, named by run.mjs. */
export default {
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  mutate: mutatedIn(folder, shareOf(process.env.MUTATED_SHARE)),
  // The program that some tests start is built of the sandbox; no change is active in it.
  buildCommand: 'npm run build --silent',
  ignorePatterns: ['/dist', '/.mutation', '/.interop', '/docs', '/examples', '/test/mutation/node_modules'],
  tempDirName: '.mutation/sandbox',
  // Stryker reads this one with the compiler's old interface, and there is nothing in it to adapt.
  tsconfigFile: 'none.json',
  concurrency: 1,
  timeoutMS: 3_000,
  timeoutFactor: 2,
  dryRunTimeoutMinutes: 15,
  // A change at load time runs all tests anew: these are tables and patterns, which the other changes in their users cover.
  ignoreStatic: true,
  // The texts of messages are no behaviour.
  mutator: { excludedMutations: ['StringLiteral'] },
  incremental: true,
  incrementalFile: `${report}.json`,
  reporters: ['html', 'clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, allowEmojis: false, reportTests: false, skipFull: true },
  htmlReporter: { fileName: `${report}.html` },
  allowEmpty: false,
};
