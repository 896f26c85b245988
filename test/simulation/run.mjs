// npm run soak [-- SEED [PATH]] [-- --seeds N] [-- --first N] [-- --target NAME]: runs simulations, or one of them again.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const SEEDS = '200';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string' }, first: { type: 'string' }, target: { type: 'string' } },
});
const [seed, path] = positionals;
const env = {
  ...process.env,
  SOAK_FIRST: seed ?? values.first ?? '1',
  SOAK_SEEDS: seed === undefined ? (values.seeds ?? SEEDS) : '1',
  ...(path !== undefined && { SOAK_PATH: path }),
  ...(values.target !== undefined && { SOAK_TARGET: values.target }),
};
// One seed is for looking into a failure: the other soaks do not run.
const tests = seed === undefined && values.seeds === undefined ? ['test/simulation', 'test/soak'] : ['test/simulation'];
const only = seed === undefined ? [] : ['-t', `seed ${seed}:`];
const { status } = spawnSync('npx', ['vitest', 'run', ...tests, ...only], { stdio: 'inherit', env });
process.exitCode = status ?? 1;
