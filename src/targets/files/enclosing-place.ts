import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { realPath, schemeOf } from '../../fs/local-path.ts';
import { TABLES } from '../../table/columns.ts';

const OWN_FOLDERS: readonly string[] = [...TABLES, '_dfinery'];

/**
 * Throws a configuration failure for a path in a folder that belongs to the tables of another place. A purge of that
 * place removes each file that is not its own, and readers of its tables see Parquet files at any depth. `markers` are
 * those of all targets.
 */
export function checkOutsideTables(place: string, markers: readonly string[]): void {
  if (schemeOf(place) !== undefined) return;
  for (let path = pathWithoutLinks(place); path !== dirname(path); path = dirname(path)) {
    const other = dirname(path);
    if (!OWN_FOLDERS.includes(basename(path)) || !markers.some((marker) => existsSync(join(other, marker)))) continue;
    throw configError(
      `${place} lies in a folder of the tables in ${other}, where a purge removes every file that is not theirs: give ` +
        `a place outside ${path}.`,
    );
  }
}

const pathWithoutLinks = (path: string): string => {
  const real = realPath(path);
  return existsSync(real) ? real : join(pathWithoutLinks(dirname(real)), basename(real));
};
