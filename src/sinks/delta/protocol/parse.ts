import schema from '../../../../schemas/delta-log.json' with { type: 'json' };
import { configError, type UserError } from '../../../base/errors.ts';
import { isObject } from '../../../base/json.ts';
import { compileSchema } from '../../../config/validate.ts';
import type { Action } from './actions.ts';
import { filePathOf } from './paths.ts';

const valid = compileSchema(schema);
const KNOWN = ['protocol', 'metaData', 'add', 'remove', 'txn', 'domainMetadata', 'commitInfo'] as const;

/** The actions of a log entry. Throws a configuration failure that names the entry for anything that is not one. */
export function parseEntry(text: string, where: string): Action[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap((line) => parseAction(parseJson(line, where), where));
}

/** An action that is known; none for one that a later protocol added, which readers pass over by that protocol's word. */
export function parseAction(value: unknown, where: string): Action[] {
  if (!isObject(value)) throw damaged(where, 'a line is no object');
  const known = KNOWN.find((name) => Object.hasOwn(value, name) && value[name] !== null);
  if (known === undefined) return [];
  const one = { [known]: value[known] };
  if (!valid(one)) {
    const [first] = valid.errors ?? [];
    throw damaged(where, `${first?.instancePath.slice(1) || known} ${first?.message ?? 'is wrong'}`);
  }
  const action = one as Action;
  if ('add' in action) checkPath(action.add.path, where);
  if ('remove' in action) checkPath(action.remove.path, where);
  return [action];
}

export function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(where, 'it is not JSON');
  }
}

function checkPath(path: string, where: string): void {
  if (filePathOf(path) === undefined) throw damaged(where, 'it names a file outside the table');
}

export const damaged = (where: string, why: string): UserError =>
  configError(
    `${where} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
    {
      where: { file: where },
    },
  );
