import { expect, it } from 'vitest';
import { EXIT, severityOf } from '../../../src/base/errors.ts';

it('of several failures the one that no waiting mends decides the exit code', () => {
  const { done, failed, usage, later, lost, guard } = EXIT;
  const worstFirst = [done, later, guard, failed, lost, usage].sort((a, b) => severityOf(b) - severityOf(a));
  expect(worstFirst).toEqual([failed, usage, lost, guard, later, done]);
});
