import { unlink } from 'node:fs/promises';
import { downloadChecked } from '../../service/export/download.ts';
import type { ExportAnswer, ExportRefusal, ExportRequest } from '../../service/export/protocol.ts';
import type { CheckedFile } from '../receipt.ts';
import { openSpoolFile } from '../spool.ts';
import type { Run } from './run.ts';

/** What one request came to, after all attempts: a file in the folder of the run, or a refusal. */
export type ExportResult = CheckedFile | ExportRefusal;

/** The export of one day, with what was spent for it. */
export interface DayRequest extends ExportRequest {
  readonly effort: DayEffort;
}

/** What the exports of one day have in common. */
export interface DayEffort {
  /** Requests that were sent. */
  exports: number;
}

export const newEffort = (): DayEffort => ({ exports: 0 });

/**
 * Sends an export until its answer is final. A file whose last line may be cut is downloaded once more. Throws what is
 * no answer of the service: a failure of the quota, of the clocks or of the disk.
 */
export async function fetchExport(run: Run, request: DayRequest): Promise<ExportResult> {
  const first = await downloadFile(run, request);
  if (first.kind !== 'checked') return first;
  const endsAsUsual = first.scan.finalNewline === (run.finalNewline ?? true);
  if (endsAsUsual) return accepted(run, first, first.scan.finalNewline);
  const message = first.scan.finalNewline
    ? `${request.from} ends with a line end, unlike the days before; it is downloaded once more.`
    : `${request.from}: the last line may be cut; the day is downloaded once more.`;
  run.deps.logger.info('day.last_line', message, { day: request.from });
  await discard(first);
  const second = await downloadFile(run, request);
  if (second.kind !== 'checked') return second;
  // Two files that end in the same way show how this service ends its files.
  const isSame = second.scan.finalNewline === first.scan.finalNewline;
  return accepted(run, second, isSame ? second.scan.finalNewline : run.finalNewline);
}

function accepted(run: Run, file: CheckedFile, finalNewline: boolean | undefined): CheckedFile {
  run.finalNewline = finalNewline;
  run.recordExported(file.scan.eventNames);
  return file;
}

async function downloadFile(run: Run, request: DayRequest): Promise<ExportResult> {
  const { timezone, suppression, edits, counts } = run.deps;
  let path = '';
  const body = await downloadChecked({
    ...run.deps,
    signal: run.signal,
    label: request.from,
    send: (signal) => sendOnce(run, request, signal),
    open: () => {
      path = run.newPath();
      return openSpoolFile(run.folder, path);
    },
    scan: { timezone, requireSystem: true, dropRows: suppression, edits },
    onBytes: (count) => {
      counts.bytes += count;
    },
  });
  return body.kind === 'checked' ? { ...body, path } : body;
}

async function sendOnce(run: Run, request: DayRequest, signal: AbortSignal): Promise<ExportAnswer> {
  request.effort.exports++;
  const answer = await run.deps.service.exportEvents(request, signal).finally(() => run.countExports());
  try {
    run.recordAnswer(answer);
  } catch (error) {
    if (answer.kind === 'data') await answer.close();
    throw error;
  }
  return answer;
}

/** Removes the files of answers. */
export async function discard(...answers: readonly ExportResult[]): Promise<void> {
  for (const answer of answers) if (answer.kind === 'checked') await unlink(answer.path).catch(() => {});
}
