import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * The file that a path leads to: through a link, what is written beside a file (its log) and what replaces it would else
 * belong to the link.
 */
export function realFile(path: string): string {
  const file = resolve(path);
  if (!existsSync(file)) return file;
  return lstatSync(file).isSymbolicLink() ? realpathSync(file) : file;
}

export const fileExists = (file: string): boolean => existsSync(resolve(file));

/** Removes what a run that died left of a database. Whoever holds the lock of the file it belongs to may. */
export function sweep(path: string): void {
  for (const name of [path, `${path}.wal`]) rmSync(name, { force: true });
}

/** Removes what a run that died had spilled into its temporary folder. */
export function sweepSpilled(folder: string): void {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder);
  const spilled = names.filter((name) => name.startsWith('duckdb_temp_'));
  for (const name of spilled) rmSync(join(folder, name), { force: true });
  if (spilled.length === names.length) rmdirSync(folder);
}
