import { transientError, UserError } from '../../base/errors.ts';
import { formatDuration } from '../../base/quantities.ts';
import type { Runtime } from '../../base/runtime.ts';
import { RowReader } from '../../cells/csv/row-reader.ts';
import { TimeLimitReached, withinTime } from '../../http/time-limit.ts';
import type { EventRequest, ExportService } from './export-service.ts';

/** Who configures a connection waits for its schema (ms). */
const HEADER_TIMEOUT_MS = 60_000;

/** The column names; empty if they did not come, for the reason that a clause says. */
interface ExportHeader {
  readonly header: readonly string[];
  readonly reason?: string;
}

/**
 * Sends one export and reads its column names alone. Every answer counts, as does none within a minute: it is not sent
 * again. Throws a configuration failure, and the signal's reason.
 */
export async function exportHeader(
  request: EventRequest,
  { service, clock, signal }: Pick<Runtime, 'clock' | 'signal'> & { readonly service: ExportService },
): Promise<ExportHeader> {
  try {
    return await withinTime(HEADER_TIMEOUT_MS, { clock, signal }, (timedSignal) =>
      service.export(request, timedSignal, async (answer) =>
        answer.kind === 'data'
          ? { header: await readHeader(answer.bytes, { needsLineEnd: true }) }
          : { header: [], reason: answer.clause },
      ),
    );
  } catch (error) {
    signal.throwIfAborted();
    const isTimeOver = error instanceof TimeLimitReached;
    if (!isTimeOver && !(error instanceof UserError && error.kind === 'transient')) throw error;
    const reason = isTimeOver ? `no header came within ${formatDuration(HEADER_TIMEOUT_MS)}` : error.message;
    return { header: [], reason };
  }
}

/**
 * The first line of a body, which is read no further. Throws a UserError if there is none. Without a line end its last
 * name may have been cut; `needsLineEnd`: such a line is none.
 */
export async function readHeader(
  bytes: AsyncIterable<Uint8Array>,
  { needsLineEnd = false } = {},
): Promise<readonly string[]> {
  const reader = new RowReader();
  for await (const chunk of bytes) {
    reader.push(chunk);
    if (reader.next()) return reader.row.texts();
  }
  reader.finish();
  if (!reader.next() || (needsLineEnd && !reader.hasLineEnd))
    throw transientError('The export ended before its first line did.');
  return reader.row.texts();
}
