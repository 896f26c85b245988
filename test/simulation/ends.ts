import fc from 'fast-check';
import { CAP, type End } from './actions.ts';
import { pick } from './common.ts';
import type { Effect } from './machine/process.ts';
import { USERS } from './service-settings.ts';

/** The effects around which a process is ended; those around which a kill finds most occur most often. */
const EFFECTS: readonly Effect[] = [
  ...(['commit', 'commit', 'commit', 'rename', 'rename'] as const),
  ...(['write', 'remove', 'statement', 'create', 'send', 'sync'] as const),
];

export const how = pick('kill', 'kill', 'stop', 'power');
export const side = pick('before', 'after');

export const end: fc.Arbitrary<End> = fc.oneof(
  fc.record({ how, side, effect: fc.constant('any' as const), nth: fc.integer({ min: 1, max: 450 }) }),
  fc.record({ how, side, effect: fc.constantFrom(...EFFECTS), nth: fc.integer({ min: 1, max: 10 }) }),
  fc.record({ how, side, effect: fc.constantFrom(...EFFECTS), nth: fc.integer({ min: 1, max: 40 }) }),
);

export const users = fc.uniqueArray(fc.integer({ min: 0, max: USERS - 1 }), { minLength: 1, maxLength: CAP + 1 });
