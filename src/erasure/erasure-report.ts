import { count, withSeparators } from '../base/quantities.ts';
import type { Ledger } from './ledger/ledger.ts';
import { type ListCounts, type ListedId, MAX_SHOWN, refusals } from './list.ts';
import { MAX_NAMED, type PlacePurge, type Purged, type PurgePlan } from './purge.ts';
import { NOT_REQUESTED, type Requested } from './requests.ts';

/** What an erasure will do: all that is known before anything is sent or removed. */
export interface ErasurePlan {
  /** When it was begun (ms since 1970). */
  readonly began: number;
  readonly ledger: Ledger;
  readonly counts: ListCounts;
  /** Undefined if no place is to be purged. */
  readonly purgePlan: PurgePlan | undefined;
  /** Whom the service is asked for. */
  readonly toRequest: readonly ListedId[];
  /** Whom the ledger knows as deleted. */
  readonly doneBefore: readonly ListedId[];
  readonly isPurgeOnly: boolean;
  /** The limit that the erasure exceeds, as a sentence. */
  readonly guard: string | undefined;
  readonly hash: string;
  readonly warnings: readonly string[];
}

interface Executed {
  readonly purged: Purged | undefined;
  readonly requested: Requested;
}

/** What a plan would do, or did until `now` (schemas/deletion.json). Ids appear nowhere. */
export function reportOf(plan: ErasurePlan, now: number, executed?: Executed) {
  const { ledger, purgePlan, toRequest } = plan;
  const { counts: sent, stoppedBy } = executed?.requested ?? NOT_REQUESTED;
  return {
    v: 1,
    kind: 'deletion',
    mode: executed === undefined ? 'plan' : 'executed',
    run: executed === undefined ? null : ledger.run,
    ...plan.counts,
    done_before: plan.doneBefore.length,
    to_request: toRequest.length,
    guard: plan.guard ?? null,
    purge_only: plan.isPurgeOnly,
    /** Null if the service was not asked. */
    ids_with_profile: purgePlan?.listedPeople.withProfile ?? null,
    hash: plan.hash,
    warnings: [...new Set([...plan.warnings, ...(executed?.purged?.warnings ?? [])])],
    places: (executed?.purged ?? purgePlan)?.places.map((place) => placeReport(place, purgePlan?.entries ?? [])) ?? [],
    seconds: Math.round(now - plan.began) / 1_000,
    ...sent,
    // Also those that were never requested.
    undecided: executed === undefined ? 0 : toRequest.length - sent.done - sent.rejected,
    stopped_by: stoppedBy?.code ?? null,
    head: executed === undefined || !ledger.isKept ? null : ledger.head,
  } as const;
}

/** What the purge found and removed in one place. */
function placeReport(place: PlacePurge, entries: readonly ListedId[]) {
  const { target, path, people, foreign, result, failure } = place;
  const { personCount, rowCount, peopleWithOtherIds, rowsOf, suppressedOthers } = people;
  const withoutRows = entries.filter(({ id }) => !rowsOf.has(id));
  return {
    target: target.name,
    place: path,
    people: personCount,
    rows: rowCount,
    /** The people of the suppression list, who leave with those of the list. */
    other_people: suppressedOthers.personCount,
    other_rows: suppressedOthers.rowCount,
    shared: peopleWithOtherIds.size,
    ids_without_rows: withoutRows.length,
    /** The rows of the list whose ids have no row in the place; a hundred at most. */
    row_numbers: withoutRows.slice(0, MAX_NAMED).map(({ row }) => row),
    /** Null: nothing was removed, or a failure leaves open how many were. */
    rows_removed: result?.rowsRemoved ?? null,
    bytes_before: result?.bytesBefore ?? null,
    bytes_after: result?.bytesAfter ?? null,
    /** A hundred at most. */
    foreign: foreign.slice(0, MAX_NAMED),
    error: failure?.message ?? null,
  };
}

export type ErasureReport = ReturnType<typeof reportOf>;

/** The report as text: one `label  number` a line, then a line a place. */
export function reportLines(report: ErasureReport): string[] {
  const { done, to_request, requests } = report;
  const rows: (readonly [string, number])[] = [
    // `--suppressed` has no list of IDs.
    ...unlessZero('rows of the list', report.received),
    ...refusals(report.refused).map(([why, n]) => [`  refused: ${why}`, n] as const),
    ...unlessZero('  repeated', report.duplicates),
    ...unlessZero('IDs', report.ids),
    ...(report.ids_with_profile === null
      ? []
      : [['  with a profile at the service', report.ids_with_profile] as const]),
    ...unlessZero('  deleted before, not requested again', report.done_before),
    ...(report.purge_only ? [] : [['  to request', to_request] as const]),
  ];
  if (report.mode === 'executed' && !report.purge_only) {
    rows.push(
      ['requests sent', requests],
      ['deleted at the service', done],
      ...unlessZero('rejected by the service', report.rejected),
      ...codeRows(report.rejected_codes),
      ...unlessZero('undecided', report.undecided),
      ...codeRows(report.undecided_codes),
    );
  }
  const width = Math.max(...rows.map(([label]) => label.length));
  return [
    ...rows.map(([label, n]) => `${label.padEnd(width)}  ${withSeparators(n).padStart(9)}`),
    ...report.places.map(placeLine),
    ...(report.head === null ? [] : [`head of the ledger: ${report.head}`]),
  ];
}

const unlessZero = (label: string, n: number): (readonly [string, number])[] => (n === 0 ? [] : [[label, n]]);
const codeRows = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([code, n]) => [`  ${code}`, n] as const);

function placeLine(place: ErasureReport['places'][number]): string {
  const {
    people,
    rows,
    other_people,
    other_rows,
    ids_without_rows: idsWithoutRows,
    row_numbers,
    rows_removed,
    error,
  } = place;
  const shown = row_numbers.slice(0, MAX_SHOWN).join(', ');
  const more = idsWithoutRows > MAX_SHOWN ? ', …' : '';
  const withoutRowsText = `${count(idsWithoutRows, 'ID')} without a row there (row ${shown}${more})`;
  const others = `${count(other_people, 'other')} of the suppression list, ${count(other_rows, 'row')}`;
  const parts = [
    `${place.target} ${place.place}: ${count(people, 'person', 'people')}, ${count(rows, 'row')}`,
    ...(other_rows === 0 ? [] : [others]),
    ...(rows_removed === null ? [] : [`${count(rows_removed, 'row')} removed`]),
    ...(idsWithoutRows === 0 ? [] : [withoutRowsText]),
    ...(place.foreign.length === 0 ? [] : [`not made here, stays: ${place.foreign.slice(0, MAX_SHOWN).join(', ')}`]),
  ];
  return `${parts.join('; ')}${error === null ? '' : `. ${error}`}`;
}

/** `40000: 3, 40001: 1` */
export const codesText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');
