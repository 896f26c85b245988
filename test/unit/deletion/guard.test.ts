import { describe, expect, it } from 'vitest';
import { guardProblem } from '../../../src/erasure/case.ts';

const share = (count: number, maxDeletionsPercent: number, knownProfiles: number) =>
  guardProblem(count, { maxDeletionsPerSync: 1_000_000, maxDeletionsPercent, knownProfiles });

describe('the guard', () => {
  it('allows exactly the configured share, and no more', () => {
    for (let hundredths = 1; hundredths <= 10_000; hundredths++) {
      expect(share(hundredths, hundredths / 100, 10_000), `${hundredths / 100} %`).toBeUndefined();
      expect(share(hundredths + 1, hundredths / 100, 10_000), `${hundredths / 100} %`).toBeDefined();
    }
  });

  it('requires known_profiles for a share, unless nobody is to be deleted', () => {
    const limits = { maxDeletionsPerSync: 1_000 };
    expect(guardProblem(1_000, { ...limits, maxDeletionsPercent: 1, knownProfiles: undefined })).toBeUndefined();
    expect(guardProblem(1_000, { ...limits, maxDeletionsPercent: undefined, knownProfiles: 1 })).toBeUndefined();
    expect(share(0, 0, 100)).toBeUndefined();
    expect(share(1, 0, 100)).toContain('1.00 % of known_profiles (100)');
  });

  it('allows exactly the configured number, and no more', () => {
    const limits = { maxDeletionsPerSync: 3, maxDeletionsPercent: undefined, knownProfiles: undefined };
    expect(guardProblem(3, limits)).toBeUndefined();
    expect(guardProblem(4, limits)).toContain('raise max_deletions_per_sync to 4');
  });
});
