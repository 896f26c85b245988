import { count, grouped } from '../base/quantities.ts';
import { type DeletionList, refusalText } from './list.ts';
import type { PlaceReport } from './place.ts';
import { newCounts, type RequestCounts } from './requests.ts';

export interface Reported {
  readonly counts: DeletionList['counts'];
  /** Ids that are to be requested. */
  readonly wanted: number;
  /** Ids that are not requested, since the ledger knows them as deleted. */
  readonly doneBefore: number;
  readonly isPurgeOnly: boolean;
  readonly guard: string | undefined;
  readonly places: readonly PlaceReport[];
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly withProfile: number | null;
  readonly warnings: readonly string[];
  readonly hash: string;
  readonly seconds: number;
}

/** What was done, once it was. */
export interface Executed {
  readonly sent: RequestCounts;
  readonly stoppedBy: string | undefined;
  readonly run: string;
  readonly head: string | undefined;
}

/** What a case did, or if `executed` is absent would do (schemas/deletion.json). Ids appear nowhere. */
export function reportOf(plan: Reported, executed?: Executed) {
  const { counts, wanted, doneBefore, isPurgeOnly, guard, places, withProfile, warnings, hash, seconds } = plan;
  const sent = executed?.sent ?? newCounts();
  return {
    v: 1,
    kind: 'deletion',
    mode: executed === undefined ? 'plan' : 'executed',
    run: executed?.run ?? null,
    ...counts,
    done_before: doneBefore,
    to_request: wanted,
    ...sent,
    // Also those that were never requested.
    undecided: executed === undefined ? 0 : wanted - sent.done - sent.rejected,
    guard: guard ?? null,
    purge_only: isPurgeOnly,
    ids_with_profile: withProfile,
    places,
    warnings,
    stopped_by: executed?.stoppedBy ?? null,
    seconds,
    head: executed?.head ?? null,
    hash,
  } as const;
}

export type DeletionReport = ReturnType<typeof reportOf>;

/** The report as text: one `label  number` a line, then a line a place. */
export function reportLines(report: DeletionReport): string[] {
  const { done, to_request: wanted, requests } = report;
  const rows: (readonly [string, number])[] = [
    // `--suppressed` has no list of IDs.
    ...some('rows of the list', report.received),
    ...Object.entries(report.refused).map(([why, n]) => [`  refused: ${refusalText(why)}`, n] as const),
    ...some('  repeated', report.duplicates),
    ...some('IDs', report.ids),
    ...(report.ids_with_profile === null
      ? []
      : [['  with a profile at the service', report.ids_with_profile] as const]),
    ...some('  deleted before, not requested again', report.done_before),
    ...(report.purge_only ? [] : [['  to request', wanted] as const]),
  ];
  if (report.mode === 'executed' && !report.purge_only) {
    rows.push(
      ['requests sent', requests],
      ['deleted at the service', done],
      ...some('rejected by the service', report.rejected),
      ...codes(report.rejected_codes),
      ...some('undecided', report.undecided),
      ...codes(report.undecided_codes),
    );
  }
  const width = Math.max(...rows.map(([label]) => label.length));
  return [
    ...rows.map(([label, n]) => `${label.padEnd(width)}  ${grouped(n).padStart(9)}`),
    ...report.places.map(placeLine),
    ...(report.head === null ? [] : [`head of the ledger: ${report.head}`]),
  ];
}

const some = (label: string, n: number): (readonly [string, number])[] => (n === 0 ? [] : [[label, n]]);
const codes = (all: Readonly<Record<string, number>>) =>
  Object.entries(all).map(([code, n]) => [`  ${code}`, n] as const);

/** Most rows of the list that a line shows. */
const MAX_ROWS = 10;

function placeLine(place: PlaceReport): string {
  const { people, rows, other_people, other_rows, ids_without_rows: lacking, row_numbers, rows_removed, error } = place;
  const shown = row_numbers.slice(0, MAX_ROWS).join(', ');
  const without = `${count(lacking, 'ID')} without a row there (row ${shown}${lacking > MAX_ROWS ? ', …' : ''})`;
  const found = `${place.target} ${place.place}: ${count(people, 'person', 'people')}, ${count(rows, 'row')}`;
  const others = `${count(other_people, 'other')} of the suppression list, ${count(other_rows, 'row')}`;
  const parts = [
    found,
    ...(other_rows === 0 ? [] : [others]),
    ...(rows_removed === null ? [] : [`${count(rows_removed, 'row')} removed`]),
    ...(lacking === 0 ? [] : [without]),
    ...(place.foreign.length === 0 ? [] : [`not made here, stays: ${place.foreign.slice(0, MAX_ROWS).join(', ')}`]),
  ];
  return `${parts.join('; ')}${error === null ? '' : `. ${error}`}`;
}

/** `40000: 3, 40001: 1` */
export const codesOf = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');
