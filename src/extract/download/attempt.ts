import { createHash } from 'node:crypto';
import { open, unlink, writeFile } from 'node:fs/promises';
import { Scanner, type ScanResult } from '../../cells/columns/scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import {
  type ExportBody,
  type ExportRefusal,
  type ExportRequest,
  UnreadableBody,
} from '../../service/export/protocol.ts';
import { spoolError } from '../spool.ts';
import type { Run } from './run.ts';

/** One export, completely downloaded and checked, in the folder of the run. */
export interface ExportFile {
  readonly kind: 'file';
  /** Path of the normalised CSV. */
  readonly path: string;
  readonly scan: Omit<ScanResult, 'tail'>;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
}

/** What one request came to. */
export type ExportResult = ExportFile | ExportRefusal;

/**
 * Sends one request and reads its answer into a checked file. A body without a byte, and one that is broken or could
 * not be read to its end, is a refusal with status 200. Throws UserError of the quota, the clocks and the spool.
 */
export async function attemptExport(run: Run, request: ExportRequest): Promise<ExportResult> {
  const answer = await run.deps.service.exportEvents(request, run.signal).finally(() => run.countExports());
  run.hasAnswered ||= answer.kind === 'data' || answer.status !== undefined;
  if (answer.kind !== 'data') {
    run.compareClocks(answer.serverTime);
    return answer;
  }
  const path = run.newPath();
  try {
    run.compareClocks(answer.serverTime);
    return await scanBody(run, answer, path);
  } catch (error) {
    await unlink(path).catch(() => {});
    run.signal.throwIfAborted();
    return refusalFor(error);
  } finally {
    await answer.close();
  }
}

/** Writes the normalised body to a new file at `path`. */
async function scanBody(
  { deps: { timezone, suppression, edits, counts }, signal, folder }: Run,
  answer: ExportBody,
  path: string,
): Promise<ExportFile> {
  const onDisk = <T>(work: Promise<T>) =>
    work.catch((error: unknown) => {
      throw spoolError(error, folder);
    });
  const scanner = new Scanner({ timezone, requireSystem: true, dropRows: suppression, edits });
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await onDisk(open(path, 'wx', OWNER_FILE));
  try {
    for await (const chunk of answer.bytes) {
      signal.throwIfAborted();
      bytes += chunk.length;
      counts.bytes += chunk.length;
      hash.update(chunk);
      const parts = scanner.push(chunk);
      if (parts.length > 0) await onDisk(writeFile(file, parts));
    }
    const { tail, ...scan } = scanner.finish();
    await onDisk(writeFile(file, tail));
    // A network disk may tell only now that it is full.
    await onDisk(file.close());
    return { kind: 'file', path, bytes, sha256: hash.digest('hex'), scan };
  } finally {
    await file.close().catch(() => {});
  }
}

function refusalFor(error: unknown): ExportRefusal {
  const status = 200;
  if (error instanceof MalformedCsv) {
    const { reason, where, expected, found } = error;
    if (reason === 'empty_body') {
      return { kind: 'retry', code: reason, message: 'the answer had no byte', status, emptyAs: 'no byte' };
    }
    const message = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
    return { kind: 'retry', code: reason, message, status, where };
  }
  if (error instanceof UnusableCsv) return { kind: 'config', code: 'not_csv', message: error.message, status };
  if (!(error instanceof UnreadableBody)) throw error;
  const { fault, message } = error;
  return { kind: fault === 'stall' ? 'retry_or_split' : 'retry', code: fault, message, status };
}
