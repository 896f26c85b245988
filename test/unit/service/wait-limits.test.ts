import { describe, expect, it } from 'vitest';
import { waitProblem } from '../../../src/service/quota/wait-limits.ts';

const NOW = 1_000_000;

describe('a wait', () => {
  it('of the command line is as long as --max-wait allows', () => {
    expect(waitProblem(NOW + 1_000_000, NOW, {})).toBeUndefined();
    expect(waitProblem(NOW + 10_000, NOW, { maxWaitMs: 10_000 })).toBeUndefined();
    expect(waitProblem(NOW + 10_001, NOW, { maxWaitMs: 10_000 })).toBe(
      'longer than the 10 s that it is waited for (--max-wait). What was loaded stays; run again then.',
    );
  });

  it('of a discovery ends before the platform ends it, and no message says that it keeps anything', () => {
    const limits = { maxWaitMs: 60_000, waitsEndAt: NOW + 90_000 };
    expect(waitProblem(NOW + 60_000, NOW, limits)).toBeUndefined();
    expect(waitProblem(NOW + 60_001, NOW, limits)).toBe('longer than the 1 min that it is waited for. Run again then.');
    const later = NOW + 40_000;
    expect(waitProblem(NOW + 90_000, later, limits)).toBeUndefined();
    expect(waitProblem(NOW + 90_001, later, limits)).toBe('longer than the platform waits. Run again then.');
    const after = NOW + 100_000;
    expect(waitProblem(after + 1, after, limits)).toBe('longer than the platform waits. Run again then.');
    // A pause that the service does not name, of which the end is now.
    expect(waitProblem(after, after, limits)).toBeUndefined();
  });
});
