import fc from 'fast-check';
import { CAP, type End } from './acts.ts';
import { pick } from './drawn.ts';
import type { Effect } from './machine/process.ts';
import { USERS } from './service-settings.ts';

/** What is stored by it is stored at once or not at all: where a kill tells most comes most often. */
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
