import { count, withSeparators } from '../base/quantities.ts';
import type { Ledger } from './ledger/ledger.ts';
import { type ListCounts, MAX_SHOWN_ROWS, refusals } from './list.ts';
import type { PlaceReport, Purge } from './purge.ts';
import { newCounts, type Requested } from './requests.ts';

/** What a plan knows, with the names of the report. */
export interface PlanSummary extends ListCounts {
  /** Ids that are not requested, since the ledger knows them as deleted. */
  readonly done_before: number;
  readonly to_request: number;
  /** The limit that the case exceeds, as a sentence. */
  readonly guard: string | null;
  readonly purge_only: boolean;
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly ids_with_profile: number | null;
  readonly hash: string;
  readonly warnings: readonly string[];
}

interface ReportInput {
  readonly planned: PlanSummary;
  readonly purge: Purge | undefined;
  readonly ledger: Ledger;
  /** Undefined for a plan. */
  readonly requested: Requested | undefined;
  /** When the case began, and the time now (ms since 1970). */
  readonly began: number;
  readonly now: number;
}

/** What a case would do, or once its requests ended did (schemas/deletion.json). Ids appear nowhere. */
export function reportOf({ planned, purge, ledger, requested, began, now }: ReportInput) {
  const sent = requested?.counts ?? newCounts();
  return {
    v: 1,
    kind: 'deletion',
    mode: requested === undefined ? 'plan' : 'executed',
    run: requested === undefined ? null : ledger.run,
    ...planned,
    places: purge?.reports ?? [],
    warnings: [...planned.warnings, ...(purge?.warnings ?? [])],
    seconds: Math.round(now - began) / 1_000,
    ...sent,
    // Also those that were never requested.
    undecided: requested === undefined ? 0 : planned.to_request - sent.done - sent.rejected,
    stopped_by: requested?.stoppedBy?.code ?? null,
    head: requested === undefined || !ledger.isKept ? null : ledger.head,
  } as const;
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

function placeLine(place: PlaceReport): string {
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
  const shown = row_numbers.slice(0, MAX_SHOWN_ROWS).join(', ');
  const more = idsWithoutRows > MAX_SHOWN_ROWS ? ', …' : '';
  const withoutRowsText = `${count(idsWithoutRows, 'ID')} without a row there (row ${shown}${more})`;
  const others = `${count(other_people, 'other')} of the suppression list, ${count(other_rows, 'row')}`;
  const parts = [
    `${place.target} ${place.place}: ${count(people, 'person', 'people')}, ${count(rows, 'row')}`,
    ...(other_rows === 0 ? [] : [others]),
    ...(rows_removed === null ? [] : [`${count(rows_removed, 'row')} removed`]),
    ...(idsWithoutRows === 0 ? [] : [withoutRowsText]),
    ...(place.foreign.length === 0
      ? []
      : [`not made here, stays: ${place.foreign.slice(0, MAX_SHOWN_ROWS).join(', ')}`]),
  ];
  return `${parts.join('; ')}${error === null ? '' : `. ${error}`}`;
}

/** `40000: 3, 40001: 1` */
export const codesText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');
