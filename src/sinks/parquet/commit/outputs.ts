import { join, relative, sep } from 'node:path';
import type { TableName } from '../../../table/columns.ts';
import { countRows, FILE, readFiles, UNFINISHED } from '../../sql/files/parquet-file.ts';
import type { Dataset } from '../dataset/dataset.ts';
import { livePath } from '../dataset/layout.ts';
import type { LiveFile } from '../dataset/manifest.ts';
import { makeDurable } from '../durable.ts';
import type { Move } from '../journal.ts';

/** A file that waits to take the place of a partition's file, or to become it. */
export interface Output {
  readonly dataset: TableName;
  readonly date: string;
  /** Where it waits. */
  readonly path: string;
  /** Rows by window, where they are known without looking. */
  readonly windows?: Readonly<Record<string, number>> | undefined;
}

/** Where the next file of a partition waits. `stage` tells two for the same partition apart. */
export function waitingPath(dataset: Dataset, name: TableName, date: string, stage = 'next'): string {
  return join(dataset.places.temporary, `${name}.${date}.${stage}.${UNFINISHED}`);
}

export function moveOf(dataset: Dataset, output: Output): Move {
  const from = relative(dataset.places.root, output.path).split(sep).join('/');
  return { from, to: livePath(output.dataset, output.date) };
}

/** Brings the files to the disk and says what each will be once it is live. */
export async function describe(dataset: Dataset, outputs: readonly Output[]): Promise<LiveFile[]> {
  const counts = await countRows(
    dataset.engine,
    outputs.map(({ path }) => path),
  );
  const windows = await windowsOf(
    dataset,
    outputs.filter((output) => output.dataset === 'events' && output.windows === undefined),
  );
  const files: LiveFile[] = [];
  for (const output of outputs) {
    const path = livePath(output.dataset, output.date);
    const found = await makeDurable(output.path);
    const own = output.windows ?? windows.get(output.path) ?? {};
    files.push({
      path,
      rows: counts.get(output.path) ?? 0,
      ...found,
      ...(output.dataset === 'events' && { windows: own }),
    });
  }
  return files;
}

async function windowsOf(dataset: Dataset, outputs: readonly Output[]): Promise<Map<string, Record<string, number>>> {
  const found = new Map<string, Record<string, number>>(outputs.map(({ path }) => [path, {}]));
  if (outputs.length === 0) return found;
  const files = readFiles([...found.keys()], true);
  const rows = await dataset.engine.rows(
    `SELECT ${FILE} AS path, _dfinery_window AS w, count(*) AS n FROM ${files} GROUP BY 1, 2`,
  );
  for (const { path, w, n } of rows) {
    const windows = found.get(String(path));
    // Stryker disable next-line ConditionalExpression: the rows are those of these files; this is for the compiler
    if (windows !== undefined) windows[String(w)] = Number(n);
  }
  return found;
}

/** The live files once the outputs have taken their places, in order of their paths. */
export function filesAfter(before: readonly LiveFile[], after: readonly LiveFile[]): LiveFile[] {
  const files = new Map(before.map((file) => [file.path, file]));
  for (const file of after) files.set(file.path, file);
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
