import { addDays, dayAt } from '../../base/days.ts';
import { transientError, UserError } from '../../base/errors.ts';
import { RowSource } from '../../cells/csv/row-source.ts';
import { readNames } from '../../cells/csv/tokenizer.ts';
import type { ExtractDeps } from '../../extract/deps.ts';
import type { ExportBody, ExportRequest } from '../../service/export/protocol.ts';
import { TimeLimitReached, withinTime } from '../../service/http/abort.ts';

type HeaderDeps = Pick<ExtractDeps, 'service' | 'clock' | 'signal'>;

/** Time for all attempts (ms): who configures a connection waits for its schema. */
const MAX_MS = 60_000;
/** Requests until the header is given up: the oldest or the newest day may be refused. */
const ATTEMPTS = 3;

/**
 * The column names of one export, of which no more is read; undefined when the service does not export so many days
 * within a minute. Throws a UserError of the quota, and the signal's reason.
 */
export async function exportHeader(
  request: ExportRequest,
  { service, clock, signal }: HeaderDeps,
): Promise<readonly string[] | undefined> {
  const attempts = async (limited: AbortSignal) => {
    let { from, to } = request;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const answer = await service.exportEvents({ ...request, from, to }, limited);
      const header = answer.kind === 'data' ? await headerOf(answer) : undefined;
      if (header !== undefined) return header;
      // A day at one of the ends is perhaps gone, or has not begun where the service is.
      if (answer.kind === 'gone') from = addDays(from, 1);
      else if (answer.kind === 'invalid') to = dayAt(clock.now(), -12);
      else if (answer.kind !== 'data') return undefined;
    }
    return undefined;
  };
  try {
    return await withinTime(MAX_MS, { clock, signal }, attempts);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TimeLimitReached) return undefined;
    throw error;
  }
}

async function headerOf(answer: ExportBody): Promise<readonly string[] | undefined> {
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
  const found: { header?: readonly string[] } = {};
  const source = new RowSource({
    row(row, _start, { tokenizer }) {
      found.header ??= readNames(row, tokenizer);
      return false;
    },
  });
  for await (const chunk of bytes) {
    try {
      source.push(chunk);
    } catch (error) {
      // The header is complete, so that an error behind it does not matter here.
      if (found.header === undefined) throw error;
    }
    if (found.header !== undefined) return { header: found.header, isWhole: true };
  }
  source.finish();
  if (found.header === undefined) throw transientError('The export ended before its first line did.');
  return { header: found.header, isWhole: source.finalNewline };
}
