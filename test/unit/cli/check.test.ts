import { describe, expect, it } from 'vitest';
import { exitOf } from '../../../src/cli/commands/check.ts';

describe('the exit code of check', () => {
  it.each([
    ['ok', true, 'ok', 0],
    ['quota_spent', true, 'too_many_api_requests', 0],
    ['inconclusive', true, 'invalid_parameter', 0],
    ['inconclusive', false, 'client_connection_closed', 3],
    ['wrong_token', false, 'unauthorized_token', 2],
    ['unreachable', false, 'refused', 3],
    ['unreachable', false, 'certificate', 2],
  ] as const)('%s, usable %s, %s: %i', (kind, usable, code, exit) => {
    expect(exitOf({ kind, usable, code })).toBe(exit);
  });
});
