import schema from '../../schemas/history.json' with { type: 'json' };
import { configFailure } from '../base/errors.ts';
import { compileSchema, proved } from '../config/validate.ts';
import type { ColumnChange } from '../table/changes.ts';
import type { RunRecord } from '../table/runs.ts';

/** The runs and column changes of a target, as stored in a file or an object (S49). Schema: schemas/history.json. */
export interface History {
  readonly v: 1;
  /** Oldest first. */
  readonly runs: readonly RunRecord[];
  /** Oldest first. */
  readonly changes: readonly ColumnChange[];
}

export const NO_HISTORY: History = { v: 1, runs: [], changes: [] };

const valid = compileSchema(schema);

/** The history that a text holds. Throws a configuration failure for anything else; `where`: what it lies in. */
export function parseHistory(text: string, where: string): History {
  const found = jsonOf(text);
  if (valid(found)) return proved<History>(found);
  throw configFailure(
    `${where} is no history of this program: restore it from a copy, or remove it to begin a new one.`,
    { where: { file: where } },
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
