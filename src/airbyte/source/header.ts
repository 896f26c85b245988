import { addDays } from '../../base/days.ts';
import { transientError, UserError } from '../../base/errors.ts';
import { MalformedCsv } from '../../cells/csv/malformed.ts';
import { RowSource } from '../../cells/csv/row-source.ts';
import { readNames } from '../../cells/csv/tokenizer.ts';
import type { ExtractDeps } from '../../extract/deps.ts';
import { exportName } from '../../extract/export-request.ts';
import { earliestToday } from '../../extract/plan/days.ts';
import type { ExportRequest } from '../../service/export/protocol.ts';
import { type Received, type Refusal, retrying } from '../../service/export/retry.ts';
import type { WaitLimits } from '../../service/quota/wait-limits.ts';

type HeaderDeps = WaitLimits & Pick<ExtractDeps, 'service' | 'clock' | 'random' | 'logger' | 'signal'>;

/** Days by which the first day may be moved: the service does not document its time zone. */
const MAX_MOVES = 2;

/**
 * The column names of one export, of which no more is read; undefined when the service cannot export so many days at
 * once. A last day that has perhaps not begun there is left out. Throws a UserError.
 */
export async function exportHeader(request: ExportRequest, deps: HeaderDeps): Promise<readonly string[] | undefined> {
  let { from, to } = request;
  for (let moves = 0; ; ) {
    const moved = { ...request, from, to };
    const answer = await retrying({ ...deps, exportName: exportName(moved) }, () => requestHeader(moved, deps));
    if (answer.kind === 'received') return answer.value;
    if (answer.kind === 'invalid') {
      const now = deps.clock.now();
      const earlier = [now, answer.serverTime ?? now].map(earliestToday).find((day) => from <= day && day < to);
      // Perhaps it refuses the number of days: the request for the types shows whether something else is wrong.
      if (earlier === undefined) return undefined;
      to = earlier;
    } else {
      if (answer.kind === 'too_big' || moves++ >= MAX_MOVES) return undefined;
      from = addDays(from, 1);
    }
  }
}

interface HeaderLine {
  readonly header: readonly string[];
  /** The line had a line end; without one its last name may have been cut. */
  readonly isWhole: boolean;
}

async function requestHeader(request: ExportRequest, deps: HeaderDeps): Promise<Received<readonly string[]> | Refusal> {
  const answer = await deps.service.exportEvents(request, deps.signal);
  if (answer.kind !== 'data') return answer;
  try {
    const { header, isWhole } = await readHeader(answer.bytes);
    const truncation = isWhole
      ? undefined
      : { message: 'its first line has no line end and may have been cut', digest: header.join('\0'), isUsual: true };
    return { kind: 'received', value: header, truncation };
  } catch (error) {
    deps.signal.throwIfAborted();
    if (!(error instanceof UserError) || error.kind !== 'transient') throw error;
    return { kind: 'retry', code: error instanceof MalformedCsv ? error.reason : 'broken', message: error.message };
  } finally {
    await answer.close();
  }
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
