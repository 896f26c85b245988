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
  /** Instant of the request (ms since 1970) by the earlier clock: days over by then are complete. */
  readonly sentAt: number;
  /** Instant at which it was checked (ISO, UTC). */
  readonly verifiedAt: string;
}

/** An answer that some services give for a day without rows. */
export interface EmptyAnswer {
  readonly kind: 'empty';
  /** `no byte`, `204`, `404` or `an empty list`: two answers are the same if this is equal. */
  readonly what: string;
  readonly sentAt: number;
}

/** An answer that is no file. */
export interface Refusal extends Pick<ExportRefusal, 'kind' | 'code' | 'message'> {
  /** Set if the body came to its end and is broken. */
  readonly malformed?: MalformedCsv;
}

/**
 * Sends one request and reads its answer into a checked file. An answer without data, and a body that is broken or
 * could not be read to its end, is a refusal. Throws UserError of the quota and of the spool.
 */
export async function attemptExport(run: Run, request: ExportRequest): Promise<ExportFile | EmptyAnswer | Refusal> {
  const { clock, service, counts } = run.deps;
  const machine = clock.now();
  const answer = await service.exportEvents(request, run.signal).finally(() => {
    counts.exports = service.sent - run.sentBefore;
  });
  run.facts.recordTime(answer.serverTime);
  const sentAt = Math.min(machine, run.facts.earlierTime());
  if (answer.kind !== 'data') {
    return answer.emptyAs === undefined ? answer : { kind: 'empty', what: answer.emptyAs, sentAt };
  }
  const path = run.newPath();
  const drop = () => unlink(path).catch(() => {});
  try {
    const body = await scanBody(run, answer, path);
    if (body !== undefined) {
      return { kind: 'file', path, sentAt, verifiedAt: new Date(clock.now()).toISOString(), ...body };
    }
    await drop();
    return { kind: 'empty', what: 'no byte', sentAt };
  } catch (error) {
    await drop();
    run.signal.throwIfAborted();
    if (error instanceof MalformedCsv) {
      const { reason, where, expected, found } = error;
      const message = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
      return { kind: 'retry', code: reason, message, malformed: error };
    }
    if (error instanceof UnusableCsv) return { kind: 'config', code: 'not_csv', message: error.message };
    if (!(error instanceof UnreadableBody)) throw error;
    const { fault, message } = error;
    return { kind: fault === 'stall' ? 'retry_or_split' : 'retry', code: fault, message };
  } finally {
    await answer.close();
  }
}

/** Writes the normalised body to a new file at `path`; undefined if it had no byte. */
async function scanBody(
  { deps: { timezone, suppression, edits, counts }, signal, folder }: Run,
  answer: ExportBody,
  path: string,
): Promise<Pick<ExportFile, 'bytes' | 'sha256' | 'scan'> | undefined> {
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
    if (bytes === 0) return undefined;
    const { tail, ...scan } = scanner.finish();
    await onDisk(writeFile(file, tail));
    // A network disk may tell only now that it is full.
    await onDisk(file.close());
    return { bytes, sha256: hash.digest('hex'), scan };
  } finally {
    await file.close().catch(() => {});
  }
}
