import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STATEFUL_TARGETS, TARGETS } from '../../../src/targets/targets.ts';
import { TARGETS as WITH_FIXTURE } from '../../support/targets/target-fixture.ts';

it('the suites over all targets have a fixture of each that stores what it loaded', () => {
  expect([...WITH_FIXTURE]).toEqual(STATEFUL_TARGETS.map(({ name }) => name));
});

it('the README has a row of each target', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8');
  for (const { name } of TARGETS) expect(readme).toContain(`\n| \`sync ${name} `);
});
