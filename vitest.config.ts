import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
    // Many tests wait for child processes: one worker a core, where the default leaves one core out.
    maxWorkers: '100%',
    reporters: ['default'],
  },
});
