import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { literal } from '../../../src/base/sql.ts';
import { query } from './query.ts';

interface Action {
  readonly add?: { readonly path: string; readonly partitionValues: object };
  readonly remove?: { readonly path: string };
}

/**
 * The live files of a Delta table, and the day of each; an empty text if the table has no days. By the protocol alone:
 * the last checkpoint, and the entries of the log after it.
 */
export async function liveDeltaFiles(table: string): Promise<ReadonlyMap<string, string>> {
  const log = join(table, '_delta_log');
  const names = readdirSync(log).sort();
  const checkpoint = names.findLast((name) => name.endsWith('.checkpoint.parquet'));
  const version = checkpoint === undefined ? -1 : Number(basename(checkpoint).slice(0, 20));
  const days = new Map<string, string>();
  if (checkpoint !== undefined) {
    const adds = `SELECT add.path AS path, add.partitionValues AS partition FROM read_parquet(${literal(join(log, checkpoint))}) WHERE add IS NOT NULL`;
    for (const { path, partition } of await query(':memory:', adds)) days.set(String(path), dayIn(partition));
  }
  const entries = names.filter((name) => /^\d{20}\.json$/.test(name) && Number(name.slice(0, 20)) > version);
  for (const name of entries) {
    const lines = readFileSync(join(log, name), 'utf8').trimEnd().split('\n');
    const actions = lines.map((line): Action => JSON.parse(line));
    for (const { remove } of actions) if (remove !== undefined) days.delete(remove.path);
    for (const { add } of actions) if (add !== undefined) days.set(add.path, dayIn(add.partitionValues));
  }
  return new Map([...days].map(([path, day]) => [join(table, decodeURIComponent(path)), day]));
}

const dayIn = (partition: unknown): string => JSON.stringify(partition).match(/\d{4}-\d\d-\d\d/)?.[0] ?? '';
