import { join } from 'node:path';
import { defect } from '../../../base/errors.ts';
import { isTableName, type TableName } from '../../../table/columns.ts';

/** Readers that glob see files of this ending alone. */
export const LIVE_ENDING = '.parquet';
const PARTITION =
  /^(events|event_items|event_logs)\/event_date=(\d{4}-\d{2}-\d{2}|__HIVE_DEFAULT_PARTITION__)\/data_0\.parquet$/;

/** The one file of a partition, from the dataset's folder, with `/`: its name never changes. */
export function livePath(dataset: TableName, date: string): string {
  return `${dataset}/event_date=${date}/data_0${LIVE_ENDING}`;
}

/** True for the path of a file that a dataset of ours may have. */
export const isLivePath = (path: unknown): path is string => typeof path === 'string' && PARTITION.test(path);

/** Throws for a path that no file of ours has. */
export function partitionOf(path: string): { readonly dataset: TableName; readonly date: string } {
  const match = PARTITION.exec(path);
  const dataset = match?.[1];
  // Stryker disable next-line LogicalOperator,ConditionalExpression: the schema of the manifest lets no such path in; this is for the compiler
  if (match === null || !isTableName(dataset)) throw defect('The manifest names a file outside its datasets.');
  return { dataset, date: match[2] };
}

/** The folders and files of ours beside the datasets. */
export interface Places {
  readonly root: string;
  readonly own: string;
  readonly manifest: string;
  readonly journal: string;
  /** A DuckDB file without tables: the process that has it open is the writer. */
  readonly lock: string;
  /** Everything in it belongs to the writer under way. */
  readonly temporary: string;
}

export function placesIn(root: string): Places {
  const own = join(root, '_dfinery');
  return {
    root,
    own,
    manifest: join(own, 'manifest.json'),
    journal: join(own, 'journal.json'),
    lock: join(own, 'lock'),
    temporary: join(own, 'tmp'),
  };
}
