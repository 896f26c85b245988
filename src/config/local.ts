// The keys that the command line alone has: how it works with places on this machine, and the object `erasure`.

import { tmpdir } from 'node:os';
import erasureSchema from '../../schemas/erasure-config.json' with { type: 'json' };
import validateErasure from '../../schemas/erasure-config.validator';
import localSchema from '../../schemas/local-config.json' with { type: 'json' };
import validateLocal from '../../schemas/local-config.validator';
import { parseDuration } from '../base/quantities.ts';
import type { Fields } from './fields.ts';
import { keyProblem } from './problems.ts';

export const LOCAL_PART = {
  schema: localSchema,
  validate: validateLocal,
  makeConfig: ({ lockWait, retention, spoolDir, ...fields }: Fields<typeof localSchema>) => ({
    ...fields,
    lockWaitMs: durationOf(lockWait),
    retentionMs: durationOf(retention),
    spoolDir: spoolDir ?? tmpdir(),
  }),
  *ruleProblems({ target, place }: Pick<Fields<typeof localSchema>, 'target' | 'place'>) {
    if ((target === undefined) === (place === undefined)) return;
    yield keyProblem(target === undefined ? 'target' : 'place', 'is missing: target and place go together');
  },
};

/** Milliseconds of a duration that the schema has checked. */
const durationOf = (text: string) => parseDuration(text) as number;

export const ERASURE_PART = {
  schema: erasureSchema,
  validate: validateErasure,
  makeConfig: (fields: Fields<typeof erasureSchema>) => fields,
};
