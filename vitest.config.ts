import { defineConfig } from 'vitest/config';

/** What would reach into a test from the shell that started it: proxies, tokens, a Node that trusts anybody. */
const FOREIGN =
  /^(https?|no|all)_proxy$|^node_(use_env_proxy|tls_reject_unauthorized|extra_ca_certs)$|^dfinery_(?!cli$)/i;
for (const name of Object.keys(process.env)) if (FOREIGN.test(name)) delete process.env[name];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Only a test that hangs takes so long, on however slow a machine: none proves anything by these.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 300_000 } },
    pool: 'forks',
    // A worker keeps the modules that it has loaded for its next file: a third of the processor time.
    isolate: false,
    // Many tests wait for child processes: one worker a core, where the default leaves one core out.
    maxWorkers: '100%',
    reporters: ['default'],
  },
});
