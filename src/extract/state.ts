import valid from '../../schemas/state.validator';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { problemText } from '../base/validator.ts';
import type { HashedColumns, RequestHashes } from './export-request.ts';
import { latestToday } from './plan/days.ts';
import type { ExportState } from './window.ts';

/** Why a stored state cannot be used; the Airbyte source handles `filters`, `columns` and `future` itself. */
export type StateProblem = 'malformed' | 'version' | 'service' | 'filters' | 'columns' | 'future';

/** A stored state that this run must not use: exit 2. Only the command line shows `advice`. */
export class StateError extends UserError {
  override readonly name = 'StateError';
  readonly problem: StateProblem;
  /** The message without the advice and without a full stop. */
  readonly statement: string;

  constructor(problem: StateProblem, statement: string, advice: string) {
    super('config', `${statement}: ${advice}.`);
    this.problem = problem;
    this.statement = statement;
  }
}

/**
 * Parses a stored state; every key is kept. `undefined`, `null` and an object without keys are no state. Throws a
 * StateError (`malformed`, `version`) for anything else that is not a state.
 */
export function parseState(value: unknown): ExportState | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw malformedError('it is not a JSON object');
  if (Object.keys(value).length === 0) return undefined;
  const { version } = value;
  if (typeof version === 'number' && version > 1) {
    throw new StateError(
      'version',
      `The stored state has version ${version} and was written by a newer program, this one knows version 1`,
      'use that one',
    );
  }
  if (!valid<ExportState>(value)) throw malformedError((valid.errors ?? []).map(problemText).join('; '));
  return Object.freeze({ ...value });
}

/** The hashed columns of a target, from its stored state; empty if none was ever hashed. */
export const hashedIn = (state: unknown): readonly HashedColumns[] => parseState(state)?.hashed ?? [];

/** The hash of the service whose data a target holds, from its stored state, if that names it. */
export const serviceIn = (state: unknown): string | undefined => parseState(state)?.service;

const malformedError = (why: string) =>
  new StateError(
    'malformed',
    `The stored state cannot be used (${why})`,
    'wanted {"version":1,"from_date":"YYYY-MM-DD"}; restore it from a copy, or start anew with another target',
  );

/**
 * Checks that the stored state is of the service and the filters of this run, and its cursor not in the future.
 * `startsOver`: a full refresh meets other filters, or a cursor in the future, so that the target's contents do not
 * count. Throws a StateError if the state must not be used.
 */
export function checkState(
  stored: unknown,
  hashes: RequestHashes,
  run: { readonly now: number; readonly fullRefresh?: boolean | undefined },
): { readonly state: ExportState | undefined; readonly startsOver: boolean } {
  const state = parseState(stored);
  if (state === undefined) return { state, startsOver: false };
  if (state.service !== undefined && state.service !== hashes.service) {
    throw new StateError(
      'service',
      'The target holds the data of another service (base_url or service_id differ)',
      'use another target for this one',
    );
  }
  const startsOver = state.question !== undefined && state.question !== hashes.request;
  if (startsOver && run.fullRefresh !== true) {
    if (otherColumns(state, hashes)) throw new StateError('columns', OTHER_COLUMNS, REREAD_COLUMNS);
    throw new StateError(
      'filters',
      'The target was filled with other filters (events, properties or their conditions differ)',
      'put them back, use another target, or read everything again with --full-refresh',
    );
  }
  const today = latestToday(run.now);
  const future = state.from_date > today;
  if (future && run.fullRefresh === true) return { state, startsOver: true };
  if (future && !startsOver) {
    throw new StateError(
      'future',
      `The stored cursor ${state.from_date} lies in the future (today is at most ${today})`,
      'check the clock of this machine, or read everything again with --full-refresh',
    );
  }
  return { state, startsOver };
}

/** True if the rows of a target have another form than this run would give them. */
export const otherColumns = (state: ExportState | undefined, hashes: RequestHashes): boolean =>
  state?.question !== undefined && state.columns !== hashes.columns;

const OTHER_COLUMNS =
  'The target was filled with other columns dropped or hashed, or under another key (columns_drop, columns_hash or hash_key differ)';
const REREAD_COLUMNS =
  'put them back, use another target, or read everything again with --full-refresh. Rows of days that the ' +
  'service no longer exports keep the old form';
