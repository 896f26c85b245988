import { formatDuration } from '../../base/durations.ts';
import { transientError, UserError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';
import { RowSource } from '../../cells/csv/row-source.ts';
import { TimeLimitReached, withinTime } from '../../http/time-limit.ts';
import type { ExportBody, ExportRequest, ExportService } from './protocol.ts';

/** Who configures a connection waits for its schema (ms). */
const HEADER_TIMEOUT_MS = 60_000;

/** The column names; empty if they did not come, for the reason that a clause says. */
interface ExportHeader {
  readonly header: readonly string[];
  readonly reason?: string;
}

/**
 * Sends one export and reads its column names alone. Every answer counts, as does none within a minute: it is not sent
 * again. Throws a UserError of the quota, and the signal's reason.
 */
export async function exportHeader(
  request: ExportRequest,
  { service, clock, signal }: Pick<Runtime, 'clock' | 'signal'> & { readonly service: ExportService },
): Promise<ExportHeader> {
  try {
    return await withinTime(HEADER_TIMEOUT_MS, { clock, signal }, async (timedSignal) => {
      const answer = await service.exportEvents(request, timedSignal);
      return answer.kind === 'data' ? await wholeHeader(answer) : { header: [], reason: answer.clause };
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TimeLimitReached)) throw error;
    return { header: [], reason: `no header came within ${formatDuration(HEADER_TIMEOUT_MS)}` };
  }
}

/** The header of a body, unless that is cut before its first line ends. */
async function wholeHeader(answer: ExportBody): Promise<ExportHeader> {
  try {
    const { header, isWhole } = await readHeader(answer.bytes);
    return isWhole ? { header } : { header: [], reason: 'the export ended before its first line did' };
  } catch (error) {
    if (error instanceof UserError && error.kind === 'transient') return { header: [], reason: error.message };
    throw error;
  } finally {
    await answer.close();
  }
}

interface HeaderLine {
  readonly header: readonly string[];
  /** The line had a line end; without one its last name may have been cut. */
  readonly isWhole: boolean;
}

/** The first line of a body, which is read no further. Throws a UserError if there is none. */
export async function readHeader(bytes: AsyncIterable<Uint8Array>): Promise<HeaderLine> {
  const source = new RowSource();
  for await (const chunk of bytes) {
    source.push(chunk);
    if (source.next()) return { header: source.row.texts(), isWhole: true };
  }
  source.finish();
  if (!source.next()) throw transientError('The export ended before its first line did.');
  return { header: source.row.texts(), isWhole: source.hasLineEnd };
}
