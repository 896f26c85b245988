import { expect, it } from 'vitest';
import { bySeverity, configError, EXIT } from '../../../src/base/errors.ts';

it('of several failures the one that no waiting mends decides the exit code', () => {
  const { failed, usage, later, lost, guard } = EXIT;
  const failures = [later, guard, failed, lost, usage].map((exitCode) => configError('', { exitCode }));
  const worstFirst = failures.sort(bySeverity).map(({ exitCode }) => exitCode);
  expect(worstFirst).toEqual([failed, usage, lost, guard, later]);
});
