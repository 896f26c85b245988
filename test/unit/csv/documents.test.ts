import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { malformedOf } from '../../support/failure.ts';
import { readBack, scanIn } from '../../support/scan.ts';

interface DocumentVector {
  readonly name: string;
  readonly body?: string;
  readonly bodyHex?: string;
  readonly rows?: readonly string[][];
  readonly header?: readonly string[];
  readonly normalised?: string;
  readonly hasFinalNewline?: boolean;
  readonly invalidUtf8?: unknown;
  readonly error?: { readonly reason: string; readonly row: number; readonly byte: number };
}

const file = new URL('../../../spec/vectors/documents.json', import.meta.url);
const documents: DocumentVector[] = JSON.parse(readFileSync(file, 'utf8'));
const bytesOf = (d: DocumentVector) =>
  d.bodyHex === undefined ? Buffer.from(d.body ?? '') : Buffer.from(d.bodyHex, 'hex');

/** Every cut into two, into single bytes, and none. */
function cuts(length: number): number[][] {
  const single = Array.from({ length: Math.max(0, length - 1) }, (_, i) => i + 1);
  return [[], single, ...single.map((at) => [at])];
}

describe('an export', () => {
  for (const vector of documents) {
    const bytes = bytesOf(vector);
    if (vector.error === undefined) {
      it(`with ${vector.name} is read and normalised, in any chunks`, () => {
        for (const cut of cuts(bytes.length)) {
          const { result, written } = scanIn(
            new ExportScanner({ needsEventColumns: false, minReadBytes: 1 }),
            bytes,
            cut,
          );
          expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(written)).toBe(vector.normalised);
          expect(readBack(written).slice(1)).toEqual(vector.rows);
          expect(result.columns.map(({ headerName }) => headerName)).toEqual(vector.header ?? readBack(written)[0]);
          expect(result.rows).toBe(vector.rows?.length);
          expect(result.hasFinalNewline).toBe(vector.hasFinalNewline ?? true);
          expect(result.invalidUtf8).toEqual(vector.invalidUtf8 ?? { cells: 0 });
        }
      });
    } else {
      it(`with ${vector.name} is refused with row and byte, in any chunks`, () => {
        for (const cut of cuts(bytes.length)) {
          const scanner = new ExportScanner({ needsEventColumns: false, minReadBytes: 1 });
          const { reason, where, kind } = malformedOf(() => scanIn(scanner, bytes, cut));
          expect({ reason, ...where }).toEqual(vector.error);
          expect(kind).toBe('transient');
        }
      });
    }
  }
});
