import { configError, EXIT, severityOf, transientError, UserError } from '../base/errors.ts';
import { count, plainCount } from '../base/quantities.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { type IdRefusal, type ListCounts, REFUSAL_TEXT } from './input/deletion-list.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { PlaceReport } from './place-purge.ts';
import type { Purge } from './purge.ts';
import { newCounts, type RequestCounts } from './send-requests.ts';

interface ReportedPlan {
  readonly counts: ListCounts;
  /** The ids that are still to be requested. */
  readonly wanted: readonly string[];
  readonly purge: Purge | undefined;
  readonly isPurgeOnly: boolean;
  readonly guard: string | undefined;
}

/** What a case did, or if `sent` is absent would do (schemas/deletion.json). Ids appear nowhere. */
export function reportOf(
  { counts, wanted, purge, isPurgeOnly, guard }: ReportedPlan,
  elapsedMs: number,
  sent?: RequestCounts,
  ledger?: Ledger,
) {
  const { stoppedBy, ...requests } = sent ?? newCounts();
  return {
    v: 1,
    kind: 'deletion',
    mode: sent === undefined ? 'dry_run' : 'executed',
    run: ledger?.run ?? null,
    ...counts,
    ...requests,
    // Also those that were never requested.
    undecided: sent === undefined ? 0 : wanted.length - sent.done - sent.rejected,
    guard: sent === undefined ? (guard ?? null) : null,
    purge_only: isPurgeOnly,
    ...purge?.sums,
    places: purge?.reports ?? [],
    unreached: purge?.unreached ?? [],
    stopped_by: stoppedBy?.code ?? null,
    seconds: Math.round(elapsedMs) / 1_000,
    head: ledger?.head ?? null,
  } as const;
}

export type DeletionReport = ReturnType<typeof reportOf>;

/** The report as text: one `label  number` a line. */
export function reportTable(report: DeletionReport): string {
  const isDry = report.mode === 'dry_run';
  const rows: (readonly [string, number | string])[] = [
    ['rows received', report.received],
    ...Object.entries(report.refused).map(([why, n]) => [`  refused: ${refusalText(why)}`, n] as const),
    ['  repeated', report.duplicates],
    ['ids', report.ids],
    ...(report.done_before > 0 ? [['  done by the unfinished run before', report.done_before] as const] : []),
    ...(report.rejected_before > 0 ? [['  rejected by that run', report.rejected_before] as const] : []),
    ...(isDry ? [['would be deleted', idsToRequest(report)] as const] : outcomes(report)),
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  const lines = rows.map(([label, n]) => `${label.padEnd(width)}  ${String(n).padStart(9)}`);
  return [...lines, ...report.places.map(placeLine), ...report.unreached].join('\n');
}

/** The ids that a run asks the service for, or would. */
export const idsToRequest = ({ ids, done_before, rejected_before, purge_only }: DeletionReport): number =>
  purge_only ? 0 : ids - done_before - rejected_before;

function placeLine(place: PlaceReport): string {
  const { people, rows, shared, ids_without_rows: lacking, row_numbers: numbers, error } = place;
  const found = `${place.target} ${place.place}: ${count(people, 'person', 'people')}, ${count(rows, 'row')}`;
  const removed = place.rows_removed === null ? '' : `, ${count(place.rows_removed, 'row')} removed`;
  const others = shared === 0 ? '' : `; ${count(shared, 'person', 'people')} shared with other ids of the column`;
  const more = numbers.length < lacking ? ', …' : '';
  const without =
    lacking === 0 ? '' : `; ${count(lacking, 'id')} without a row there (of row ${numbers.join(', ')}${more})`;
  return `${found}${removed}${others}${without}${error === null ? '' : `. ${error}`}`;
}

const outcomes = (report: DeletionReport): (readonly [string, number])[] => [
  ['deleted', report.done],
  ['rejected by the service', report.rejected],
  ...Object.entries(report.rejected_codes).map(([code, n]) => [`  ${code}`, n] as const),
  ['undecided', report.undecided],
  ...Object.entries(report.undecided_codes).map(([code, n]) => [`  ${code}`, n] as const),
  ['requests sent', report.requests],
];

const refusalText = (refusal: string): string => REFUSAL_TEXT[refusal as IdRefusal];

/** Refused rows with their reasons, for one sentence; undefined when there are none. */
export function refusedSentence(
  { refused, received }: Pick<DeletionReport, 'refused' | 'received'>,
  consequence = 'never sent',
): string | undefined {
  const total = Object.values(refused).reduce((a, b) => a + b, 0);
  if (total === 0) return undefined;
  const reasons = Object.entries(refused).map(([why, n]) => `${n}: ${refusalText(why)}`);
  return `${total} of ${received} rows are refused and ${consequence} (${reasons.join('; ')})`;
}

/** The failure that a run ends with beside its purge, if any. `stopped`: why it ended early. */
export function deletionFailure(
  report: DeletionReport,
  { onRejected, ledgerDir }: Pick<DestinationConfig, 'onRejected' | 'ledgerDir'>,
  stopped: UserError | undefined,
): UserError | undefined {
  const { done, undecided, rejected, done_before } = report;
  if (stopped !== undefined && report.purge_only) return stopped;
  const decided = `This run deleted ${done} of ${plainCount(idsToRequest(report), 'id')} and left ${undecided} undecided`;
  if (stopped !== undefined) {
    const { kind, exitCode, message } = stopped;
    return new UserError(kind, `${message} ${decided}.`, { exitCode, cause: stopped });
  }
  if (undecided > 0) {
    const codes = codesOf(report.undecided_codes);
    const again =
      ledgerDir === undefined
        ? 'Run again: the whole list is asked for again, since the ledger is in the log.'
        : 'Run again with the same list within 24 hours: what is open is asked for again, and nobody else.';
    return transientError(
      `${decided}: the service was not reached or gave no clear answer${codes && ` (${codes})`}. ${again}`,
    );
  }
  if (rejected > 0 && done + done_before === 0) {
    return configError(
      `The service rejected every ID (${codesOf(report.rejected_codes)}): check that the ID field holds external IDs.`,
      { exitCode: exitOfRejected(onRejected) },
    );
  }
  const why = [
    refusedSentence(report) ?? [],
    rejected > 0 ? `the service rejected ${rejected} (${codesOf(report.rejected_codes)})` : [],
  ].flat();
  if (onRejected === 'continue' || why.length === 0) return undefined;
  return configError(`on_rejected is "fail": ${why.join('; ')}.`, { exitCode: EXIT.guard });
}

/** All these failures as one, which ends the run as the most severe of them does; undefined if there are none. */
export function worstOf(failures: readonly (UserError | undefined)[]): UserError | undefined {
  const all = failures
    .filter((failure) => failure !== undefined)
    .sort((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode));
  const [worst] = all;
  if (all.length < 2) return worst;
  const { kind, exitCode } = worst;
  return new UserError(kind, all.map(({ message }) => message).join(' '), { exitCode });
}

const codesOf = (codes: Readonly<Record<string, number>>): string =>
  Object.entries(codes)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');

/** The exit code of a run that deletes nobody of its list. */
const exitOfRejected = (onRejected: DestinationConfig['onRejected']) =>
  onRejected === 'fail' ? EXIT.guard : EXIT.usage;

/** A failure if all rows were refused, which is most likely a mistake. */
export function nothingAccepted(
  report: DeletionReport,
  { onRejected }: Pick<DestinationConfig, 'onRejected'>,
): UserError | undefined {
  if (report.received === 0 || report.ids > 0) return undefined;
  const refused = refusedSentence(report);
  return configError(`Nothing was deleted: ${refused}. Check that the ID field is the right one.`, {
    exitCode: exitOfRejected(onRejected),
  });
}
