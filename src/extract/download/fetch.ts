import type { Day } from '../../base/days.ts';
import { transientError, UserError } from '../../base/errors.ts';
import type { ExportRequest } from '../../service/export/answer.ts';
import { EXPORT_RETRY, ExportRetries, type Refusal } from '../../service/export/retry.ts';
import { keyOf } from '../export-request.ts';
import { lastSettledDay, missesLateRows } from '../plan/days.ts';
import type { NoFile } from '../ports.ts';
import { type Attempt, attemptExport, Inspection } from './attempt.ts';
import type { ExportFile } from './download.ts';
import type { Run } from './run.ts';

export interface FetchOptions {
  /** The day that must be over, as its request is sent, for a later run to reuse the file. */
  readonly through: Day;
  /** Answers that may mean "too big" before the request is split; undefined: as in the retry policy. */
  readonly splitAfter?: number | undefined;
}

/**
 * One export, verified, from an earlier run's spool or from the service. Throws a UserError when the policy's attempts
 * are spent, when the user must act, or when the spool cannot be written.
 */
export async function fetchExport(
  run: Run,
  request: ExportRequest,
  options: FetchOptions,
): Promise<ExportFile | NoFile> {
  // Without a file to reuse, no await before the request: exports start in the order of days.
  const reused = run.spool.hasReusable(keyOf(request)) ? await reuse(run, request, options) : undefined;
  if (reused !== undefined) return reused;
  const refused = run.deps.sharing?.refused;
  const key = `${keyOf(request)} ${options.splitAfter}`;
  const before = refused?.get(key);
  if (before instanceof UserError) throw before;
  if (before !== undefined) return before;
  try {
    const found = await new ExportFetch(run, request, options).fetch();
    if (found.kind !== 'file') refused?.set(key, found);
    return found;
  } catch (error) {
    if (error instanceof UserError) refused?.set(key, error);
    throw error;
  }
}

async function reuse(run: Run, request: ExportRequest, options: FetchOptions): Promise<ExportFile | undefined> {
  const part = await run.spool.reuse(keyOf(request), run.plan.state.last_receipt);
  if (part === undefined) return undefined;
  const { lookbackDays } = run.plan;
  const isTooOld = missesLateRows(request.from, options.through, part.sentAt, run.deps.clock.now(), lookbackDays);
  const isOwn = isShared(run, part);
  if (!isOwn && (isTooOld || !isReusable(run, part, options))) {
    await run.spool.discard(part);
    return undefined;
  }
  updateCache(run, part);
  const whose = isOwn ? 'the download for another target' : 'a verified download of an earlier run';
  run.deps.logger.info('window.reused', `${nameOf(request)}: ${whose} is used.`, {
    window: nameOf(request),
    rows: part.scan.rows,
  });
  return part;
}

function updateCache({ known }: Run, { scan }: ExportFile): void {
  known.answered = true;
  for (const event of scan.eventNames) known.names.add(event);
}

/** True when all days of the file were over, and settled if the plan requires it, when its request was sent (S11). */
const isReusable = (run: Run, part: ExportFile, options: FetchOptions): boolean =>
  options.through <= lastSettledDay(part.sentAt, run.plan.settleHours ?? 0);

/** True for a download that this command made for another target, which is not older than what a request would bring. */
const isShared = ({ deps: { sharing } }: Run, { command }: ExportFile): boolean =>
  sharing !== undefined && command === sharing.command;

/** The attempts at one export. */
class ExportFetch {
  readonly #run: Run;
  readonly #request: ExportRequest;
  readonly #options: FetchOptions;
  readonly #name: string;
  readonly #inspection: Inspection;
  readonly #retries: ExportRetries;
  /** The latest download that may have been cut. */
  #unconfirmed: ExportFile | undefined;

  constructor(run: Run, request: ExportRequest, options: FetchOptions) {
    this.#run = run;
    this.#request = request;
    this.#options = options;
    this.#name = nameOf(request);
    this.#inspection = new Inspection(EXPORT_RETRY.malformedAfter, run.deps.options.edits === undefined);
    this.#retries = new ExportRetries({ ...run.deps, name: this.#name, signal: run.signal });
  }

  async fetch(): Promise<ExportFile | NoFile> {
    const run = this.#run;
    try {
      for (;;) {
        this.#retries.begin();
        const attempt = await run.limit(() => attemptExport(run, this.#request, this.#inspection));
        const download = await this.#downloadFrom(attempt);
        if (download !== undefined) return download;
      }
    } finally {
      if (this.#unconfirmed !== undefined) await run.spool.discard(this.#unconfirmed);
    }
  }

  /** The download, when there is one; undefined after the pause that precedes the next attempt. */
  async #downloadFrom(attempt: Attempt): Promise<ExportFile | NoFile | undefined> {
    if (attempt.kind !== 'file') return this.#refused(attempt);
    return this.#endsAsExpected(attempt) ? this.#accept(attempt) : this.#confirm(attempt);
  }

  async #refused(refusal: Refusal): Promise<NoFile | undefined> {
    const { message } = refusal;
    if (this.#inspection.isOver) throw this.#malformedAlways(message, this.#inspection.keptAs);
    const kind = await this.#retries.after(refusal, this.#options.splitAfter);
    return kind === 'again' ? undefined : { kind, message };
  }

  async #accept(found: ExportFile): Promise<ExportFile> {
    const run = this.#run;
    const { sharing } = run.deps;
    const exports = this.#retries.requests;
    const file = { ...found, exports, ...(sharing !== undefined && { command: sharing.command }) };
    updateCache(run, file);
    if (sharing?.keep === true || isReusable(run, file, this.#options)) await run.spool.saveForReuse(file);
    return file;
  }

  /**
   * Whether the body is believed to be whole (S60). A last row without a line end may have been cut in its last cell: it is
   * believed if the length was declared by a service that is known to end its bodies so. A line end of such a service may be
   * that between two rows.
   */
  #endsAsExpected({ scan: { finalNewline }, endDeclared, path }: ExportFile): boolean {
    const { known } = this.#run;
    if (path === undefined) return true;
    if (known.finalNewline === false) return !finalNewline && endDeclared;
    if (finalNewline) known.finalNewline = true;
    return finalNewline;
  }

  /** A body that may have been cut is believed if the export right before it had the same bytes; that tells how bodies end. */
  async #confirm(file: ExportFile): Promise<ExportFile | NoFile | undefined> {
    const { known, spool, deps } = this.#run;
    const { finalNewline } = file.scan;
    const before = this.#unconfirmed;
    this.#unconfirmed = file;
    if (before !== undefined) await spool.discard(before);
    if (before?.sha256 === file.sha256) {
      if (finalNewline || known.finalNewline === undefined) known.finalNewline = finalNewline;
      this.#unconfirmed = undefined;
      return this.#accept(file);
    }
    if (before === undefined && known.finalNewline === false && !this.#retries.isLast) {
      const { where } = this.#retries;
      deps.logger.debug('window.confirm', `${this.#name} is exported once more: it may have been cut.`, where);
      return undefined;
    }
    const what = finalNewline
      ? 'the body ends with a line end, unlike others, and'
      : 'the last row has no line end and';
    return this.#refused({ kind: 'retry', code: 'no_final_newline', message: `${what} may have been cut` });
  }

  #malformedAlways(message: string, path: string | undefined) {
    const kept =
      path === undefined
        ? 'No body is kept for inspection, since columns_drop or columns_hash keeps values of it out.'
        : `The last body is kept for inspection, for seven days, as ${path}.`;
    return transientError(
      `The export of ${this.#name} was broken in the same way ${EXPORT_RETRY.malformedAfter} times: ${message}. ${kept}`,
      { where: { window: this.#name, ...(path !== undefined && { file: path }) } },
    );
  }
}

/** The days of an export for messages: `2026-01-01` or `2026-01-01..2026-01-03`. */
export const nameOf = ({ from, to }: { readonly from: Day; readonly to: Day }): string =>
  from === to ? from : `${from}..${to}`;
