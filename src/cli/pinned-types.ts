import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { type ColumnType, isColumnType } from '../cells/types/column-types.ts';
import { readJsonFile } from '../fs/json-file.ts';

/** Reads the types by source name of a pinned schema, as `discover` prints it. Of equal names the first counts. */
export function readPinnedTypes(path: string | undefined): ReadonlyMap<string, ColumnType> | undefined {
  if (path === undefined) return undefined;
  const value = readJsonFile(path, 'the schema file');
  const fileError = (what: string) =>
    configError(`the schema file ${path} ${what}: make one with dfinery-elt discover.`);
  if (!isObject(value) || !Array.isArray(value.columns)) throw fileError('has no list "columns"');
  if ('v' in value && value.v !== 1) throw fileError('is of a newer version');
  const types = new Map<string, ColumnType>();
  for (const [i, column] of value.columns.entries()) {
    const { source, type } = column ?? {};
    if (typeof source !== 'string' || !isColumnType(type))
      throw fileError(`has no source name and type in entry ${i + 1}`);
    // `discover` prints the first of equal names first.
    if (!types.has(source)) types.set(source, type);
  }
  return types;
}
