import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { ExportRequest } from '../../service/export/protocol.ts';
import { type LastRefusal, retrying, type WaitBudget } from '../../service/export/retry.ts';
import { exportName, requestKey } from '../export-request.ts';
import { lastSettledDay, missesLateRows } from '../plan/days.ts';
import { attemptExport } from './attempt.ts';
import type { ExportFile } from './download.ts';
import type { Extraction } from './extraction.ts';

interface FetchOptions {
  /** The day that must have been over when the request was sent, for a later run to reuse the file. */
  readonly through: Day;
  /** Number of answers that may mean "too big" before the request is split; undefined for that of several days. */
  readonly splitAfter?: number | undefined;
  readonly waitBudget: WaitBudget;
}

/**
 * Gets one verified export, from an earlier run's spool or from the service. Throws a UserError when the policy's
 * attempts are used up, when the user must act, or when the spool cannot be written.
 */
export async function fetchExport(
  extraction: Extraction,
  request: ExportRequest,
  options: FetchOptions,
): Promise<ExportFile | LastRefusal> {
  // Without a file to reuse, nothing is awaited before the request, so that exports start in the order of days.
  const reused = extraction.spool.hasReusable(requestKey(request))
    ? await reuse(extraction, request, options)
    : undefined;
  if (reused !== undefined) return reused;
  const refusals = extraction.deps.sharing?.refusals;
  const key = `${requestKey(request)} ${options.splitAfter}`;
  const before = refusals?.get(key);
  if (before instanceof UserError) throw before;
  if (before !== undefined) return before;
  try {
    const answer = await requestExport(extraction, request, options);
    if (answer.kind !== 'file') refusals?.set(key, answer);
    return answer;
  } catch (error) {
    // Any other failure may have passed when the next target needs the export.
    if (error instanceof UserError && error.kind === 'config') refusals?.set(key, error);
    throw error;
  }
}

async function reuse(
  extraction: Extraction,
  request: ExportRequest,
  options: FetchOptions,
): Promise<ExportFile | undefined> {
  const { plan, spool, deps } = extraction;
  const file = await spool.reuse(requestKey(request), plan.state.last_receipt);
  if (file === undefined) return undefined;
  // A file that this command downloaded for another target is as new as the answer to a request would be.
  const isShared = deps.sharing !== undefined && file.command === deps.sharing.command;
  const isTooOld = missesLateRows(
    { first: request.from, last: options.through },
    { readAt: file.sentAt, now: deps.clock.now(), lookbackDays: plan.lookbackDays },
  );
  if (!isShared && (isTooOld || !isReusable(extraction, file, options))) {
    await spool.discard(file);
    return undefined;
  }
  extraction.paths.push(file.path);
  extraction.facts.recordNames(file.scan.eventNames);
  const name = exportName(request);
  const whose = isShared ? 'the download for another target' : 'a verified download of an earlier run';
  deps.logger.info('window.reused', `${name}: ${whose} is used.`, { window: name, rows: file.scan.rows });
  return file;
}

/** True when all days of the file were over, and settled if the plan requires it, when its request was sent. */
const isReusable = (extraction: Extraction, file: ExportFile, options: FetchOptions): boolean =>
  options.through <= lastSettledDay(file.sentAt, extraction.plan.settleHours ?? 0);

/** Requests an export until there is a file that is accepted as complete, or an answer that ends the attempts. */
async function requestExport(
  extraction: Extraction,
  request: ExportRequest,
  options: FetchOptions,
): Promise<ExportFile | LastRefusal> {
  const { facts, spool, deps, signal } = extraction;
  const malformed = new Map<string, number>();
  const { splitAfter, waitBudget } = options;
  const retryOptions = { ...deps, exportName: exportName(request), splitAfter, waitBudget, signal };
  const last = await retrying(retryOptions, async () => {
    const file = await extraction.limit(() => attemptExport(extraction, request, malformed));
    if (file.kind !== 'file') return file;
    if (endsAsExpected(extraction, file)) return { kind: 'received', value: file };
    const ending = file.scan.finalNewline
      ? 'the body ends with a line end, unlike others,'
      : 'the last row has no line end';
    const message = `${ending} and may have been cut`;
    const isUsual = facts.known.finalNewline === false;
    const truncation = { message, digest: file.sha256, isUsual, discard: () => spool.discard(file) };
    return { kind: 'received', value: file, truncation };
  });
  if (last.kind !== 'received') return last;
  const { value, truncation, requests } = last;
  // Two equal bodies tell how bodies end.
  if (truncation !== undefined) facts.recordEnd(value.scan.finalNewline);
  return await accept(extraction, value, requests, options);
}

/**
 * True if the body is accepted as complete. The last cell of a row without a line end may have been cut. Such a
 * body is accepted if its length was declared, and the service is known to end its bodies in this way. If such a
 * service does send a line end at the end, the body may have been cut between two rows.
 */
function endsAsExpected({ facts }: Extraction, { scan: { finalNewline }, endDeclared, path }: ExportFile): boolean {
  if (path === undefined) return true;
  if (facts.known.finalNewline === false) return !finalNewline && endDeclared;
  if (finalNewline) facts.recordEnd(true);
  return finalNewline;
}

async function accept(
  extraction: Extraction,
  received: ExportFile,
  exports: number,
  options: FetchOptions,
): Promise<ExportFile> {
  const { sharing } = extraction.deps;
  const file = { ...received, exports, ...(sharing !== undefined && { command: sharing.command }) };
  extraction.paths.push(file.path);
  extraction.facts.recordNames(file.scan.eventNames);
  if (sharing?.keep === true || isReusable(extraction, file, options)) await extraction.spool.saveForReuse(file);
  return file;
}
