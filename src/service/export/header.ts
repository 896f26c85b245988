import { transientError, UserError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';
import { RowSource } from '../../cells/csv/row-source.ts';
import { readNames } from '../../cells/csv/tokenizer.ts';
import { TimeLimitReached, withinTime } from '../http/time-limit.ts';
import type { ExportBody, ExportRequest, ExportService } from './protocol.ts';

/** Who configures a connection waits for its schema (ms). */
const HEADER_TIMEOUT_MS = 60_000;

/**
 * The column names of one export, of which no more is read. Undefined when the service does not export so many days
 * within a minute. Throws a UserError of the quota, and the signal's reason.
 */
export async function exportHeader(
  request: ExportRequest,
  { service, clock, signal }: Pick<Runtime, 'clock' | 'signal'> & { readonly service: ExportService },
): Promise<readonly string[] | undefined> {
  try {
    return await withinTime(HEADER_TIMEOUT_MS, { clock, signal }, async (limited) => {
      const answer = await service.exportEvents(request, limited);
      return answer.kind === 'data' ? wholeHeader(answer) : undefined;
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TimeLimitReached) return undefined;
    throw error;
  }
}

/** The header of a body that is not cut before its first line ends. */
async function wholeHeader(answer: ExportBody): Promise<readonly string[] | undefined> {
  try {
    const { header, isWhole } = await readHeader(answer.bytes);
    return isWhole ? header : undefined;
  } catch (error) {
    if (error instanceof UserError && error.kind === 'transient') return undefined;
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
  const reads = () => source.begin() && source.next();
  for await (const chunk of bytes) {
    source.push(chunk);
    if (reads()) return { header: readNames(source.bytes, source.tokenizer), isWhole: true };
  }
  source.finish();
  if (!reads()) throw transientError('The export ended before its first line did.');
  return { header: readNames(source.bytes, source.tokenizer), isWhole: source.hasLineEnd };
}
