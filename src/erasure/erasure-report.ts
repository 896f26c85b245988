import { formatCount, withSeparators } from '../base/quantities.ts';
import { joinNames, MAX_NAMED_IN_RECORD } from '../base/text.ts';
import type { ErasurePlan } from './erasure-plan.ts';
import { type ListedId, rowNumbersOf, rowsByReason, rowsText } from './list/id-list.ts';
import type { PlaceOutcome, PurgeOutcome } from './purge.ts';
import { countCode, RequestCounts, type RequestResult } from './requests.ts';

/** What a plan would do, or what its execution did (schemas/deletion.json). Ids appear nowhere. */
export function reportOf(
  plan: ErasurePlan,
  mode: 'plan' | 'executed',
  elapsedMs: number,
  purgeOutcome?: PurgeOutcome,
  requestResult?: RequestResult,
) {
  const { options, ledger, purgePlan, plannedIds, idsToRequest } = plan;
  const { list, requestSettings } = options;
  const isPlan = mode === 'plan';
  const counts = requestResult?.counts ?? new RequestCounts();
  // Their answers count as if they came now, but not after a purge that failed, when nobody is requested.
  const rejectedBefore = requestResult === undefined ? [] : plannedIds.filter(({ request }) => request === 'rejected');
  const rejected_codes = { ...counts.rejected_codes };
  for (const { answer } of rejectedBefore) if (answer !== undefined) countCode(rejected_codes, answer.code);
  return {
    v: 1,
    kind: 'deletion',
    mode,
    run: isPlan ? null : ledger.runId,
    ...list.counts,
    done_before: plannedIds.filter(({ request }) => request === 'done').length,
    to_request: idsToRequest.length,
    guard: plan.guardProblem ?? null,
    purge_only: requestSettings === undefined,
    /** Null if the service was not asked. */
    ids_with_profile: purgePlan?.listedPeople.profiledIdCount ?? null,
    hash: plan.hash,
    warnings: [...new Set([...plan.warnings, ...(purgePlan?.warnings ?? []), ...(purgeOutcome?.warnings ?? [])])],
    places: (purgeOutcome ?? purgePlan)?.places.map((place) => placeReport(place, purgePlan?.soughtIds ?? [])) ?? [],
    seconds: Math.round(elapsedMs) / 1_000,
    ...counts,
    rejected: counts.rejected + rejectedBefore.length,
    rejected_codes,
    // Also those that were never requested.
    undecided: isPlan ? 0 : idsToRequest.length - counts.done - counts.rejected,
    stopped_by: requestResult?.stoppedBy?.code ?? null,
    head: isPlan || !ledger.isKept ? null : ledger.head,
  } as const;
}

/** What the purge found and removed in one place. */
function placeReport(place: PlaceOutcome, soughtIds: readonly ListedId[]) {
  const { target, address, findings, foreignNames, removal, failure } = place;
  const { personCount, rowCount, sharedPersonIds, rowCountById, suppressedOthers } = findings;
  const withoutRows = soughtIds.filter(({ id }) => !rowCountById.has(id));
  return {
    target: target.name,
    place: address,
    people: personCount,
    rows: rowCount,
    /** The people of the suppression list, who leave with those of the list. */
    other_people: suppressedOthers.personCount,
    other_rows: suppressedOthers.rowCount,
    shared: sharedPersonIds.size,
    ids_without_rows: withoutRows.length,
    /** The rows of the list whose ids have no row in the place; a hundred at most. */
    row_numbers: rowNumbersOf(withoutRows.slice(0, MAX_NAMED_IN_RECORD)),
    /** Null: nothing was removed, or a failure leaves open how many were. */
    rows_removed: removal?.rowsRemoved ?? null,
    bytes_before: removal?.bytesBefore ?? null,
    bytes_after: removal?.bytesAfter ?? null,
    foreign: foreignNames,
    error: failure?.message ?? null,
  };
}

export type ErasureReport = ReturnType<typeof reportOf>;

/** The report as text: one `label  number` a line, then a line a place. */
export function reportLines(report: ErasureReport): string[] {
  // Null: the line is left out, as most zeros are. `--suppressed` has no list of IDs.
  const lines: (readonly [label: string, n: number | null])[] = [
    ['rows of the list', report.received || null],
    ...rowsByReason(report).map(({ reason, count }) => [`  refused: ${reason}`, count] as const),
    ['  repeated', report.duplicates || null],
    ['IDs', report.ids || null],
    ['  with a profile at the service', report.ids_with_profile],
    ['  deleted before, not requested again', report.done_before || null],
    ['  to request', report.purge_only ? null : report.to_request],
  ];
  if (report.mode === 'executed' && !report.purge_only) {
    lines.push(
      ['requests sent', report.requests],
      ['deleted at the service', report.done],
      ['rejected by the service', report.rejected || null],
      ...codeLines(report.rejected_codes),
      ['undecided', report.undecided || null],
      ...codeLines(report.undecided_codes),
    );
  }
  const shownLines = lines.flatMap(([label, n]) => (n === null ? [] : [{ label, n }]));
  const width = Math.max(...shownLines.map(({ label }) => label.length));
  return [
    ...shownLines.map(({ label, n }) => `${label.padEnd(width)}  ${withSeparators(n).padStart(9)}`),
    ...report.places.map((place) => placeLine(place, report.ids > 0)),
    ...(report.head === null ? [] : [`head of the ledger: ${report.head}`]),
  ];
}

const codeLines = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([code, n]) => [`  ${code}`, n] as const);

/** `hasIds`: false for a purge of the people of the suppression list alone. */
function placeLine(place: ErasureReport['places'][number], hasIds: boolean): string {
  const { rows_removed: removed, ids_without_rows: idsWithoutRows } = place;
  const suppressed = (noun: string, plural: string) =>
    `${formatCount(place.other_people, noun, plural)} of the suppression list, ${formatCount(place.other_rows, 'row')}`;
  const peopleText = `${formatCount(place.people, 'person', 'people')}, ${formatCount(place.rows, 'row')}`;
  const parts = [
    `${place.target} ${place.place}: ${hasIds ? peopleText : suppressed('person', 'people')}`,
    hasIds && place.other_rows > 0 && suppressed('other', 'others'),
    removed !== null && `${formatCount(removed, 'row')} removed`,
    // The failure of the erasure says why.
    place.error !== null && (removed === null ? 'not purged' : 'not purged whole'),
    idsWithoutRows > 0 &&
      `${formatCount(idsWithoutRows, 'ID has', 'IDs have')} no row there (list: ${rowsText(place.row_numbers, idsWithoutRows).toLowerCase()})`,
    place.foreign.length > 0 && `not made here, stays: ${joinNames(place.foreign)}`,
  ];
  return parts.filter((part) => part !== false).join('; ');
}

/** `40000: 3, 40001: 1` */
export const codesText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');
