import { resolve } from 'node:path';
import { credentialsError, hasCredentials } from '../base/address.ts';
import { systemClock } from '../base/clock.ts';
import { isDay } from '../base/days.ts';
import { systemEnv } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { requireObject } from '../config/parse.ts';
import type { Target } from '../targets/contract.ts';
import { STATEFUL_TARGETS, TARGETS } from '../targets/targets.ts';
import { unknownNameError } from './command.ts';
import { readStatus } from './commands/status.ts';
import { verifyPlace } from './commands/verify.ts';
import { pathInFolder } from './configuration.ts';
import { contextOf } from './context.ts';
import { readPlaceAndConfig } from './places.ts';
import type { PlanResult, Status, Summary, Verification } from './results.ts';
import { runSync } from './run/run.ts';
import { planSync } from './run/sync-plan.ts';
import { NO_TERMINAL } from './terminal/terminal.ts';

/** The keys of `dfinery.json`, as their schemas have them. docs/configuration.md says what they mean. */
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
  readonly to_date_inclusive?: 'auto' | 'true' | 'false' | boolean;
  readonly history_days?: number;
  readonly on_gap?: 'fail' | 'warn';
  readonly max_concurrent_exports?: number;
  readonly column_types?: Readonly<Record<string, string>>;
  readonly suppression_file?: string;
  readonly suppression_key?: string;
  readonly columns_drop?: readonly string[];
  readonly columns_hash?: readonly string[];
  readonly hash_key?: string;
  readonly user_profiles?: boolean;
  readonly schema_mode?: 'evolve' | 'freeze';
  readonly memory_limit?: string;
  readonly lock_wait?: string;
  readonly retention?: string;
  readonly spool_dir?: string;
  readonly target?: TargetName;
  readonly place?: string;
  /** For the command line alone. */
  readonly notify_url?: string;
  /** Its `ledger_dir` may hold the suppression list; the rest is for the command line alone. */
  readonly erasure?: unknown;
}

type TargetName = 'duckdb' | 'parquet' | 'delta' | 'arrow';

/** A place, and what is read and how. */
interface LibraryOptions<C> {
  /** Default: `target` and `place` of `config`. */
  readonly target?: TargetName;
  /** A file or a folder; for delta also `s3://BUCKET/PREFIX`. */
  readonly place?: string;
  readonly config: C;
  /** Ends the work within seconds; what is not committed is dropped. */
  readonly signal?: AbortSignal;
  /** Is called for each line of the log. Default: nobody is. */
  readonly log?: (line: { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly message: string }) => void;
}

interface DayOptions {
  /** First and last day (yyyy-MM-dd), both included; with them exactly these days are read. */
  readonly from?: string;
  readonly to?: string;
  /** Replaces every day that the service still exports. */
  readonly fullRefresh?: boolean;
}

export interface SyncOptions extends LibraryOptions<Configuration>, DayOptions {
  /** Longest wait for the quota (ms); longer: what is done is committed, and the sync fails. */
  readonly maxWaitMs?: number;
}

/** A plan sends nothing, and so needs no token. */
export interface PlanOptions
  extends LibraryOptions<Partial<Configuration> & Pick<Configuration, 'service_id'>>,
    DayOptions {}

/** What only reads a place needs no service. */
export type StoredPlaceOptions = LibraryOptions<Partial<Configuration>>;

/**
 * Loads the days that a place lacks, as `dfinery-elt sync` does. Throws a UserError with the command's exit code, and
 * the reason of a signal that aborts.
 */
export async function sync(options: SyncOptions): Promise<Summary> {
  const { place, config, context } = inputsOf('sync', options, TARGETS, SYNC_OPTIONS);
  const input = { place, config, daySelection: options, maxWaitMs: options.maxWaitMs };
  const { summary, failure } = await runSync(input, context);
  if (failure !== undefined) throw failure.error;
  return summary;
}

/** Says what a sync would do, as `dfinery-elt plan` does; sends nothing. */
export async function plan(options: PlanOptions): Promise<PlanResult> {
  const { place, config, context } = inputsOf('plan', options, TARGETS, PLAN_OPTIONS);
  return (await planSync({ place, config, daySelection: options }, context)).result;
}

/** Says what a place holds, as `dfinery-elt status` does. */
export async function status(options: StoredPlaceOptions): Promise<Status> {
  const { place, config } = inputsOf('status', options, STATEFUL_TARGETS);
  return readStatus(place, config);
}

/** Compares a place with its receipts, as `dfinery-elt verify` does. */
export async function verify(options: StoredPlaceOptions): Promise<Verification> {
  return verifyPlace(inputsOf('verify', options, STATEFUL_TARGETS).place);
}

/** The names of options. Of their values TypeScript says what they are. */
const PLACE_OPTIONS = ['target', 'place', 'config', 'signal', 'log'];
const PLAN_OPTIONS = [...PLACE_OPTIONS, 'from', 'to', 'fullRefresh'];
const SYNC_OPTIONS = [...PLAN_OPTIONS, 'maxWaitMs'];

/** The place and the configuration that the options of a call give, and what the call runs in. */
function inputsOf<T extends Target>(
  commandName: string,
  options: LibraryOptions<object> & DayOptions,
  targets: readonly T[],
  names = PLACE_OPTIONS,
) {
  // Without it the command line would read a file and the environment.
  requireObject(options?.config);
  const unknownName = Object.keys(options).find((name) => !names.includes(name));
  if (unknownName !== undefined) throw unknownNameError('option', unknownName, names);
  // A wrong day would read other days. Messages repeat addresses.
  if (![options.from, options.to].every((day) => day === undefined || isDay(day)))
    throw configError('from and to are not usable: wanted days of the calendar as yyyy-MM-dd.');
  if (options.place === '') throw configError('place is empty.');
  if (hasCredentials(options.place)) throw credentialsError('place');
  const { log = () => {}, signal = new AbortController().signal } = options;
  const system = { clock: systemClock, env: systemEnv, signal, terminal: NO_TERMINAL };
  const context = contextOf(system, log, 'debug', commandName);
  const { config, place } = readPlaceAndConfig(options, targets, context);
  // The process may work in another folder before the call ends.
  return { config, place: { ...place, address: pathInFolder(place.address, resolve('.')) }, context };
}
