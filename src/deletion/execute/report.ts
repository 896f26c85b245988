import { configFailure, EXIT, type Failure, transientFailure } from '../../base/errors.ts';
import { REFUSAL_TEXT } from '../input/refusal.ts';
import type { StageCounts } from '../stage/stage.ts';
import type { DeletionCounts } from './counts.ts';

/** What a run did, or would do; written as JSON with these keys (schemas/deletion.json). Ids appear nowhere. */
export interface DeletionReport {
  readonly v: 1;
  readonly kind: 'deletion';
  readonly mode: 'dry_run' | 'executed';
  /** Null: none was begun. */
  readonly run: string | null;
  readonly received: number;
  /** Rows, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  readonly duplicates: number;
  readonly ids: number;
  /** Done by the unfinished run that this one goes on with. */
  readonly done_before: number;
  readonly requests: number;
  readonly done: number;
  readonly rejected: number;
  /** Ids, by the service's code. */
  readonly rejected_codes: Readonly<Record<string, number>>;
  /** Ids with an unknown outcome, including those that were never requested. */
  readonly undecided: number;
  /** Of these, ids that had an answer, by the code of the last one. */
  readonly undecided_codes: Readonly<Record<string, number>>;
  /** The reason for which the guard stops a run (or would, in a dry run). */
  readonly guard: string | null;
  /** The service's code that stopped the run. */
  readonly stopped_by: string | null;
  readonly seconds: number;
  /** Code of the ledger's last line, to be stored apart from the ledger. */
  readonly head: string | null;
}

export interface ReportParts {
  readonly counts: StageCounts;
  readonly sent: DeletionCounts | undefined;
  readonly guard: string | undefined;
  readonly run: string | undefined;
  readonly head: string | undefined;
  readonly seconds: number;
}

export function reportOf({ counts, sent, guard, run, head, seconds }: ReportParts): DeletionReport {
  const wanted = counts.unique - counts.done;
  return {
    v: 1,
    kind: 'deletion',
    mode: sent === undefined ? 'dry_run' : 'executed',
    run: run ?? null,
    received: counts.received,
    refused: Object.fromEntries(counts.refused),
    duplicates: counts.duplicates,
    ids: counts.unique,
    done_before: counts.done,
    requests: sent?.requests ?? 0,
    done: sent?.done ?? 0,
    rejected: sent?.rejected ?? 0,
    rejected_codes: Object.fromEntries(sent?.codes ?? []),
    undecided: sent === undefined ? 0 : wanted - sent.done - sent.rejected,
    undecided_codes: Object.fromEntries(sent?.unclear ?? []),
    guard: guard ?? null,
    stopped_by: sent?.stoppedBy?.code ?? null,
    seconds: Math.round(seconds * 1_000) / 1_000,
    head: head ?? null,
  };
}

/** The report as text: one `label  number` a line. */
export function reportTable(report: DeletionReport): string {
  const isDry = report.mode === 'dry_run';
  const rows: (readonly [string, number | string])[] = [
    ['rows received', report.received],
    ...Object.entries(report.refused).map(([why, n]) => [`  refused: ${textOf(why)}`, n] as const),
    ['  repeated', report.duplicates],
    ['ids', report.ids],
    ...(report.done_before > 0 ? [['  done by the unfinished run before', report.done_before] as const] : []),
    ...(isDry ? [['would be deleted', report.ids - report.done_before] as const] : outcomes(report)),
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  const lines = rows.map(([label, n]) => `${label.padEnd(width)}  ${String(n).padStart(9)}`);
  return [...lines, ...(report.head === null ? [] : [`ledger head: ${report.head}`])].join('\n');
}

const outcomes = (report: DeletionReport): (readonly [string, number])[] => [
  ['deleted', report.done],
  ['rejected by the service', report.rejected],
  ...Object.entries(report.rejected_codes).map(([code, n]) => [`  ${code}`, n] as const),
  ['undecided', report.undecided],
  ...Object.entries(report.undecided_codes).map(([code, n]) => [`  ${code}`, n] as const),
  ['requests sent', report.requests],
];

const textOf = (refusal: string): string =>
  Object.entries(REFUSAL_TEXT).find(([name]) => name === refusal)?.[1] ?? refusal;

const sumOf = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);

/** Refused rows with their reasons, for one sentence; undefined when there are none. */
export function refusedSentence({ refused, received }: DeletionReport): string | undefined {
  const total = sumOf(refused);
  if (total === 0) return undefined;
  const reasons = Object.entries(refused).map(([why, n]) => `${n}: ${textOf(why)}`);
  return `${total} of ${received} rows are refused and never sent (${reasons.join('; ')})`;
}

/** The failure that a run ends with, if any; the most severe one. */
export function failureOf(
  report: DeletionReport,
  onRejected: 'fail' | 'continue',
  stoppedMessage: string | undefined,
): Failure | undefined {
  const { done, undecided, rejected, ids, done_before } = report;
  const decided = `${done} of ${ids - done_before} ids were deleted, ${undecided} are undecided`;
  if (stoppedMessage !== undefined) return configFailure(`${stoppedMessage} ${decided}.`);
  if (undecided > 0) {
    const codes = codesOf(report.undecided_codes);
    return transientFailure(
      `${decided}: the service was not reached or gave no clear answer${codes && ` (${codes})`}. Run again: what is open is asked for again.`,
    );
  }
  if (rejected > 0 && done + done_before === 0) {
    return configFailure(
      `The service rejected every ID (${codesOf(report.rejected_codes)}): check that the ID field holds external IDs.`,
    );
  }
  const refused = refusedSentence(report);
  if (onRejected === 'continue' || (rejected === 0 && refused === undefined)) return undefined;
  const why = [
    refused,
    rejected > 0 ? `the service rejected ${rejected} (${codesOf(report.rejected_codes)})` : undefined,
  ];
  return configFailure(`on_rejected is "fail": ${why.filter((one) => one !== undefined).join('; ')}.`, {
    exitCode: EXIT.guard,
  });
}

const codesOf = (codes: Readonly<Record<string, number>>): string =>
  Object.entries(codes)
    .map(([code, n]) => `${code}: ${n}`)
    .join(', ');

/** A failure if all rows were refused, which is most likely a mistake. */
export function nothingAccepted(report: DeletionReport): Failure | undefined {
  if (report.received === 0 || report.ids > 0) return undefined;
  const refused = refusedSentence(report);
  return configFailure(`Nothing was deleted: ${refused}. Check that the ID field is the right one.`);
}
