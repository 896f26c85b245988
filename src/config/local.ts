// The keys that the command line alone has: how it works with places on this machine, and the object `erasure`.

import { tmpdir } from 'node:os';
import erasureSchema from '../../schemas/erasure-config.json' with { type: 'json' };
import validateErasure from '../../schemas/erasure-config.validator';
import localSchema from '../../schemas/local-config.json' with { type: 'json' };
import validateLocal from '../../schemas/local-config.validator';
import { parseDuration } from '../base/quantities.ts';
import type { FieldsOf } from './fields.ts';
import { problemOf } from './problems.ts';

export const LOCAL_PART = {
  schema: localSchema,
  validate: validateLocal,
  configOf: ({ lockWait, retention, spoolDir, ...fields }: FieldsOf<typeof localSchema>) => ({
    ...fields,
    lockWaitMs: durationOf(lockWait),
    retentionMs: durationOf(retention),
    spoolDir: spoolDir ?? tmpdir(),
  }),
  *ruleProblems({ target, place }: Pick<FieldsOf<typeof localSchema>, 'target' | 'place'>) {
    if ((target === undefined) === (place === undefined)) return;
    yield problemOf('invalid', target === undefined ? 'target' : 'place', 'is missing: target and place go together');
  },
};

/** Milliseconds of a duration that the schema has checked. */
const durationOf = (text: string) => parseDuration(text) as number;

export const ERASURE_PART = {
  schema: erasureSchema,
  validate: validateErasure,
  configOf: ({ places = [], ...fields }: FieldsOf<typeof erasureSchema>) => ({ ...fields, places }),
};
