import { systemClock } from '../base/clock.ts';
import { systemEnv } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { createLogger } from '../base/log.ts';
import { systemRandom } from '../base/runtime.ts';
import { Redactor } from '../base/secrets.ts';
import { parseLocalConfig } from '../config/local.ts';
import { parseSourceConfig } from '../config/source.ts';
import { TARGETS } from '../targets/targets.ts';
import { targetSettings } from './configuration.ts';
import { targetNamed } from './place-arguments.ts';
import { sync as run } from './run/run.ts';

/** The keys of `dfinery.json`. docs/configuration.md says what they mean. */
export interface Configuration {
  readonly base_url: string;
  readonly service_id: string;
  readonly export_token: string;
  readonly start_date?: string;
  readonly end_date?: string;
  readonly events?: readonly string[];
  readonly events_condition_type?: 'all' | 'include' | 'exclude';
  readonly properties?: readonly string[];
  readonly properties_condition_type?: 'all' | 'include' | 'exclude';
  readonly timezone?: string;
  readonly lookback_days?: number;
  readonly settle_hours?: number;
  readonly to_date_inclusive?: 'auto' | 'true' | 'false';
  readonly history_days?: number;
  readonly on_gap?: 'fail' | 'warn';
  readonly max_concurrent_exports?: number;
  readonly column_types?: Readonly<Record<string, string>>;
  readonly schema_mode?: 'evolve' | 'freeze';
  readonly suppression_file?: string;
  readonly suppression_key?: string;
  readonly columns_drop?: readonly string[];
  readonly columns_hash?: readonly string[];
  readonly hash_key?: string;
  readonly user_profiles?: boolean;
  readonly memory_limit?: string;
  readonly lock_wait?: string;
  readonly retention?: string;
  readonly spool_dir?: string;
  readonly target?: 'duckdb' | 'parquet' | 'delta' | 'arrow';
  readonly place?: string;
  /** Its `ledger_dir` may hold the suppression list; the rest is for the command line alone. */
  readonly erasure?: unknown;
}

export interface SyncOptions {
  readonly target: 'duckdb' | 'parquet' | 'delta' | 'arrow';
  /** A file or a folder; for delta also `s3://BUCKET/PREFIX`. */
  readonly place: string;
  readonly config: Configuration;
  /** First and last day (yyyy-MM-dd), both included; with them exactly these days are read. */
  readonly from?: string;
  readonly to?: string;
  /** Replaces every day that the service still exports. */
  readonly fullRefresh?: boolean;
  /** Longest wait for the quota (ms); longer: what is done is committed, and the sync fails. */
  readonly maxWaitMs?: number;
  /** Ends the sync within seconds; what is not committed is dropped. */
  readonly signal?: AbortSignal;
  /** Is called for each line of the log. Default: nobody is. */
  readonly log?: (line: { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly message: string }) => void;
}

/** What `sync` has done. docs/commands.md says what the members mean. */
export interface SyncResult {
  readonly rows: number;
  /** Rows more than were there. */
  readonly rows_new: number;
  /** Days that were committed. */
  readonly days: number;
  readonly exports: number;
  /** Bytes of CSV received. */
  readonly bytes: number;
  readonly seconds: number;
  readonly from_date: string | null;
  readonly next_from_date: string | null;
  readonly to_date_inclusive: boolean | null;
  readonly columns_added: readonly string[];
  readonly columns_widened: readonly { readonly name: string; readonly from: string; readonly to: string }[];
  readonly rescued_cells: number;
  readonly suppressed_rows: number;
  /** User profiles that were stored; null if none were. */
  readonly profiles: number | null;
  readonly gaps: readonly string[];
  readonly open_days: readonly string[];
  readonly implausible_days: readonly string[];
}

/** Loads the days that a place lacks, as `dfinery-elt sync` does. Throws a UserError with the exit code of the command. */
export async function sync(options: SyncOptions): Promise<SyncResult> {
  const { place, config: given, from, to, fullRefresh = false, maxWaitMs, log = () => {} } = options;
  const { signal = new AbortController().signal } = options;
  const redactor = new Redactor();
  const { memory_limit, lock_wait, retention, spool_dir, target: _t, place: _p, erasure, ...rest } = given;
  const source = parseSourceConfig(rest, () => undefined);
  const local = parseLocalConfig({ memory_limit, lock_wait, retention, spool_dir }, new Map());
  if (source.unknown.length > 0) throw configError(`config has unknown keys: ${source.unknown.join(', ')}.`);
  for (const secret of source.secrets) redactor.add(secret);
  const { ledger_dir: ledgerDir } = isObject(erasure) ? erasure : {};
  const list = typeof ledgerDir === 'string' ? { ledgerDir } : {};
  const config = { ...source.config, ...local.config, ...list };
  const target = targetNamed(options.target, TARGETS, 'sync');
  const context = {
    ...{ clock: systemClock, env: systemEnv, random: systemRandom, signal, redactor },
    terminal: { result() {}, note() {}, status() {}, interactive: false, columns: 80 },
    logger: createLogger(log, 'debug', redactor.mask),
  };
  const open = { ...targetSettings(config, context), stdout: process.stdout };
  const days = { from, to, fullRefresh };
  const { summary, error } = await run({ config, days, maxWaitMs }, () => target.open(place, open), context);
  if (error !== undefined) throw error;
  return summary;
}
