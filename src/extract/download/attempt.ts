import { createHash } from 'node:crypto';
import { abortable } from '../../base/abort.ts';
import { transientError } from '../../base/errors.ts';
import { Scanner } from '../../cells/columns/scanner.ts';
import { MalformedCsv } from '../../cells/csv/malformed.ts';
import {
  type ExportAnswer,
  type ExportBody,
  type ExportRequest,
  UnreadableBody,
} from '../../service/export/protocol.ts';
import type { Refusal } from '../../service/export/retry.ts';
import { exportName, requestKey } from '../export-request.ts';
import type { SpoolWriter } from '../spool/spool-writer.ts';
import type { ExportFile } from './download.ts';
import type { Extraction } from './extraction.ts';

/** Bodies malformed at the same place in the same way before the last is kept for inspection and the run fails. */
const MAX_MALFORMED = 3;

/** Number of malformed bodies of one export, by the place and the kind of the fault. */
export type MalformedCounts = Map<string, number>;

/**
 * Sends one request and reads its answer into a verified file. An answer without data, and a broken body, is a refusal.
 * Throws if a body was malformed in the same way so often that another request is of no use; only that body is kept.
 */
export async function attemptExport(
  extraction: Extraction,
  request: ExportRequest,
  malformed: MalformedCounts,
): Promise<ExportFile | Refusal> {
  const { clock, options } = extraction.deps;
  const machine = clock.now();
  const answer = await send(extraction, request);
  extraction.facts.recordTime(answer.serverTime);
  if (answer.kind !== 'data') return answer;
  const id = extraction.spool.nextId();
  const makeRoom = () => abortable(extraction.makeRoom(), extraction.signal);
  let file: SpoolWriter | undefined;
  // The file that receives the unchanged bytes, if this body may be kept for inspection.
  let raw: SpoolWriter | undefined;
  try {
    file = await extraction.spool.create(id, makeRoom);
    const mayBeKept = [...malformed.values()].some((count) => count >= MAX_MALFORMED - 1);
    if (mayBeKept && options.edits === undefined)
      raw = await extraction.spool.create(extraction.spool.nextId(), makeRoom);
    const body = await scanBody(extraction, answer, file, raw);
    if (body === undefined && options.emptyBody === 'retry') return EMPTY_BODY;
    return {
      kind: 'file',
      id,
      key: requestKey(request),
      sentAt: Math.min(machine, answer.serverTime ?? machine),
      verifiedAt: new Date(clock.now()).toISOString(),
      exports: 1,
      endDeclared: answer.endDeclared,
      ...(body === undefined ? NO_ROWS : { ...body, path: await extraction.spool.complete(file, id) }),
    };
  } catch (error) {
    extraction.signal.throwIfAborted();
    if (error instanceof MalformedCsv) {
      const keep = async () => raw && extraction.spool.keepForInspection(raw);
      return await malformedBody(error, malformed, exportName(request), keep);
    }
    if (!(error instanceof UnreadableBody)) throw error;
    const { fault, message } = error;
    return { kind: fault === 'stall' ? 'retry_or_split' : 'retry', code: fault, message };
  } finally {
    await answer.close();
    await file?.drop();
    await raw?.drop();
  }
}

/** Sends the request and counts it, whether or not it succeeds. */
async function send(extraction: Extraction, request: ExportRequest): Promise<ExportAnswer> {
  try {
    return await extraction.deps.service.exportEvents(
      request,
      extraction.signal,
      extraction.facts.known.finalNewline === false,
    );
  } finally {
    extraction.deps.counts.exports = extraction.deps.service.sent - extraction.sentBefore;
  }
}

const EMPTY_BODY: Refusal = { kind: 'retry', code: 'empty_body', message: 'the answer had no byte at all' };

type ReadBody = Pick<ExportFile, 'bytes' | 'sha256' | 'scan' | 'spoolCrc'>;

/** Writes the normalised body to `file`; undefined if it had no byte. */
async function scanBody(
  extraction: Extraction,
  answer: ExportBody,
  file: SpoolWriter,
  raw: SpoolWriter | undefined,
): Promise<ReadBody | undefined> {
  const { timezone, suppression, edits } = extraction.deps.options;
  const scanner = new Scanner({ timezone, requireSystem: true, dropRows: suppression, edits });
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of answer.bytes) {
    extraction.signal.throwIfAborted();
    bytes += chunk.length;
    extraction.deps.counts.bytes += chunk.length;
    extraction.deps.onReceived?.(bytes);
    hash.update(chunk);
    if (raw !== undefined) await writeAll(raw, [chunk]);
    await writeAll(file, scanner.push(chunk));
  }
  if (bytes === 0) return undefined;
  const { tail, ...scan } = scanner.finish();
  await writeAll(file, tail);
  return { bytes, sha256: hash.digest('hex'), scan, spoolCrc: await file.finish() };
}

async function writeAll(file: SpoolWriter, chunks: readonly Uint8Array[]): Promise<void> {
  for (const chunk of chunks) {
    const waiting = file.write(chunk);
    if (waiting !== undefined) await waiting;
  }
}

/** The result of a body of zero bytes, if the configuration says that it means no rows. */
const NO_ROWS: ReadBody & Pick<ExportFile, 'path'> = {
  bytes: 0,
  sha256: createHash('sha256').digest('hex'),
  spoolCrc: 0,
  path: undefined,
  scan: {
    header: [],
    columns: [],
    rows: 0,
    suppressed: 0,
    longestRow: 0,
    hasDuplicateOrMissingIds: false,
    finalNewline: true,
    invalidUtf8: { cells: 0 },
    outLength: 0,
    eventNames: [],
  },
};

/** Converts a malformed body into a refusal, the last time into a failure, with the body kept for inspection. */
async function malformedBody(
  { reason, where, expected, found }: MalformedCsv,
  counts: MalformedCounts,
  name: string,
  keep: () => Promise<string | undefined>,
): Promise<Refusal> {
  const message = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
  const how = `${reason} ${where.row}`;
  const count = (counts.get(how) ?? 0) + 1;
  counts.set(how, count);
  if (count < MAX_MALFORMED) return { kind: 'retry', code: reason, message };
  const path = await keep();
  const kept =
    path === undefined
      ? 'No body is kept for inspection, since columns_drop or columns_hash keeps values of it out.'
      : `The last body is kept for inspection, for seven days, as ${path}.`;
  throw transientError(`The export of ${name} was broken in the same way ${count} times: ${message}. ${kept}`, {
    where: { window: name, ...(path !== undefined && { file: path }) },
  });
}
