import { describe, expect, it } from 'vitest';
import { guardProblem } from '../../../src/deletion/execute/guard.ts';

const share = (count: number, maxDeletionsPercent: number, knownProfiles: number) =>
  guardProblem(count, { maxDeletionsPerSync: 1_000_000, maxDeletionsPercent, knownProfiles });

describe('the guard', () => {
  it('lets every share through that is exactly the one allowed, and nothing above it', () => {
    for (let hundredths = 1; hundredths <= 10_000; hundredths++) {
      expect(share(hundredths, hundredths / 100, 10_000), `${hundredths / 100} %`).toBeUndefined();
      expect(share(hundredths + 1, hundredths / 100, 10_000), `${hundredths / 100} %`).toBeDefined();
    }
  });

  it('lets the number through that is allowed, and not one more', () => {
    const limits = { maxDeletionsPerSync: 3, maxDeletionsPercent: undefined, knownProfiles: undefined };
    expect(guardProblem(3, limits)).toBeUndefined();
    expect(guardProblem(4, limits)).toContain('raise max_deletions_per_sync to 4');
  });
});
