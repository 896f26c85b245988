import type { Command } from '../command.ts';
import { check } from './check.ts';
import { compactDuckDbFile, compactParquetFolder } from './compact.ts';
import { demo } from './demo.ts';
import { discover } from './discover.ts';
import { forget } from './forget.ts';
import { inspect } from './inspect.ts';
import { models } from './models.ts';
import { plan } from './plan.ts';
import { simulate } from './simulate.ts';
import { syncArrow } from './sync-arrow.ts';
import { syncDuckDb } from './sync-duckdb.ts';
import { syncParquet } from './sync-parquet.ts';
import { verifyDuckDbFile, verifyParquetFolder } from './verify.ts';

/** In the order in which help lists them. */
export const COMMANDS: readonly Command[] = [
  demo,
  syncDuckDb,
  syncParquet,
  syncArrow,
  plan,
  check,
  discover,
  inspect,
  verifyDuckDbFile,
  verifyParquetFolder,
  compactDuckDbFile,
  compactParquetFolder,
  models,
  forget,
  simulate,
];
