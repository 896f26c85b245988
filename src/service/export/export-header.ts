import { transientError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';
import { sentenceOf } from '../../base/text.ts';
import { RowReader } from '../../cells/csv/row-reader.ts';
import { requireWithin } from '../../http/time-limit.ts';
import type { EventRequest, ExportService } from './export-service.ts';

/** Who configures a connection waits for its schema (ms). */
const HEADER_TIMEOUT_MS = 60_000;

/**
 * Sends one export, once, and reads its column names alone. Throws a transient failure if they do not come within a
 * minute, whatever the answer; a configuration failure if nothing can be sent; and the signal's reason.
 */
export function downloadHeader(
  request: EventRequest,
  { service, clock, signal }: Pick<Runtime, 'clock' | 'signal'> & { readonly service: ExportService },
): Promise<readonly string[]> {
  return requireWithin('The header', HEADER_TIMEOUT_MS, { clock, signal }, (timedSignal) =>
    service.export(request, timedSignal, async (answer) => {
      if (answer.kind === 'data') return readHeader(answer.stream);
      throw transientError(sentenceOf(answer.clause));
    }),
  );
}

/** The first line of a body, which is read no further. Throws a UserError if there is none. */
export async function readHeader(stream: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const reader = new RowReader();
  for await (const chunk of stream) {
    reader.push(chunk);
    if (reader.next()) return reader.row.texts();
  }
  reader.finish();
  if (!reader.next()) throw transientError('The export has no line.');
  return reader.row.texts();
}
