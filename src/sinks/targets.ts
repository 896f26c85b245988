import { arrow } from './arrow/target.ts';
import { delta } from './delta/target.ts';
import { duckdb } from './duckdb/target.ts';
import { ducklake } from './ducklake/target.ts';
import { parquet } from './parquet/target.ts';
import type { PurgeTarget, Target } from './target.ts';

/** Every target, in the order of help. A new one is a folder of its own and a line here. */
export const TARGETS: readonly Target[] = [duckdb, parquet, delta, ducklake, arrow];

export const isPurgeTarget = (target: Target): target is PurgeTarget =>
  target.people !== undefined && target.checkPurge !== undefined && target.purge !== undefined;
