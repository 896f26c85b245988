import { createHash } from 'node:crypto';
import { ExportScanner, type ScannerOptions, type ScanResult } from '../../cells/columns/export-scanner.ts';

/** Takes the checked bytes of one attempt: UTF-8, LF, without a BOM. */
export interface BodyOutput {
  /** The bytes are valid until the promise settles. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** Called once behind the last byte. */
  close?(): Promise<void>;
  /** Called if nothing of the attempt counts. */
  discard?(): Promise<void>;
}

/** A body that was received and checked to its last byte. */
export interface CheckedBody<Output extends BodyOutput = BodyOutput> {
  readonly kind: 'checked';
  readonly scan: ScanResult;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
  /** What has its checked bytes. */
  readonly output: Output;
}

/** Checks a body to its last byte. Throws MalformedCsv, UnusableCsv, and what its stream and the output throw. */
export async function checkBody<Output extends BodyOutput>(
  stream: AsyncIterable<Uint8Array>,
  output: Output,
  { scannerOptions, signal }: { readonly scannerOptions: ScannerOptions; readonly signal: AbortSignal },
): Promise<CheckedBody<Output>> {
  const scanner = new ExportScanner(scannerOptions);
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      signal.throwIfAborted();
      bytes += chunk.length;
      hash.update(chunk);
      const part = scanner.push(chunk);
      if (part.length > 0) await output.write(part);
    }
    const { tail, scan } = scanner.finish();
    if (tail.length > 0) await output.write(tail);
    await output.close?.();
    return { kind: 'checked', scan, bytes, sha256: hash.digest('hex'), output };
  } catch (error) {
    await output.discard?.();
    throw error;
  }
}
