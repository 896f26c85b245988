import { arrow } from './arrow/arrow-target.ts';
import type { StatefulTarget, Target } from './contract.ts';
import { duckdb } from './duckdb/duckdb-target.ts';
import { delta } from './files/delta/delta-target.ts';
import { parquet } from './files/parquet/parquet-target.ts';

// A new target is a folder of its own and a line here, in the order of help.
export const STATEFUL_TARGETS: readonly StatefulTarget[] = [duckdb, parquet, delta];
export const TARGETS: readonly Target[] = [...STATEFUL_TARGETS, arrow];
