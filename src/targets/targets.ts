import { arrow } from './arrow/target.ts';
import type { StatefulTarget, Target } from './contract.ts';
import { delta } from './delta/target.ts';
import { duckdb } from './duckdb/target.ts';
import { parquet } from './parquet/target.ts';

// A new target is a folder of its own and a line here, in the order of help.
export const STATEFUL_TARGETS: readonly StatefulTarget[] = [duckdb, parquet, delta];
export const TARGETS: readonly Target[] = [...STATEFUL_TARGETS, arrow];
