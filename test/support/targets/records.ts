import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import type { Clock } from '../../../src/base/clock.ts';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { TYPES } from '../../../src/cells/types/index.ts';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import type { SpoolFile, Window } from '../../../src/extract/window.ts';
import type { StreamName } from '../../../src/targets/records/property-names.ts';
import type { RecordStream } from '../../../src/targets/records/record-plan.ts';
import { RecordWriter, type WrittenWindow } from '../../../src/targets/records/record-writer.ts';
import { scanIn } from '../scan.ts';

export const EMITTED_AT = 1_760_000_000_000;
const clock: Clock = { now: () => EMITTED_AT, sleep: async () => {}, after: () => () => {} };

interface RecordLine {
  readonly type: 'RECORD';
  readonly record: {
    readonly stream: StreamName;
    readonly emitted_at: number;
    readonly data: Record<string, unknown>;
    readonly meta?: {
      readonly changes: { readonly field: string; readonly change: string; readonly reason: string }[];
    };
  };
}

export interface Written extends WrittenWindow {
  readonly text: string;
  readonly lines: RecordLine[];
  /** The data of one stream's records. */
  data(stream: StreamName): Record<string, unknown>[];
}

export interface WriteOptions {
  /** Used and left open; default: one of its own. */
  readonly writer?: RecordWriter;
  readonly timezone?: string | undefined;
  readonly entry?: URL;
  readonly workers?: number;
  /** Size of the window's bytes in the receipt, which decides whether workers are worth it. */
  readonly bytes?: number;
  readonly signal?: AbortSignal;
  /** Called with every block of lines that is written. */
  readonly onBlock?: (lines: Uint8Array) => void;
}

/** A folder for spool files, and the writer run over them. */
export class RecordFixture {
  readonly dir = mkdtempSync(join(tmpdir(), 'dfinery-records-'));
  #files = 0;

  spool(csv: string | Uint8Array, timezone?: string): SpoolFile {
    const { result, written } = scanIn(new Scanner({ timezone, requireSystem: false }), Buffer.from(csv));
    const path = join(this.dir, `spool-${++this.#files}.csv`);
    writeFileSync(path, written);
    const { header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames } = result;
    return { path, header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames };
  }

  async write(
    csv: string | readonly string[],
    streams: readonly RecordStream[],
    options: WriteOptions = {},
  ): Promise<Written> {
    const files = [csv].flat().map((text) => this.spool(text, options.timezone));
    const { timezone, entry, workers } = options;
    const writer = options.writer ?? new RecordWriter({ timezone, clock, threads: { entry, workers } });
    const parts: Buffer[] = [];
    const keep = async (bytes: Uint8Array) => {
      parts.push(Buffer.from(bytes));
      options.onBlock?.(bytes);
    };
    const bytes = options.bytes ?? [csv].flat().join('').length;
    const written = await writer.write(
      windowOf(files, bytes),
      streams,
      keep,
      options.signal ?? new AbortController().signal,
    );
    if (options.writer === undefined) await writer.close();
    const text = Buffer.concat(parts).toString();
    const lines = text
      .split('\n')
      .slice(0, -1)
      .map((line): RecordLine => JSON.parse(line));
    return {
      ...written,
      text,
      lines,
      data: (stream) => lines.filter((line) => line.record.stream === stream).map((line) => line.record.data),
    };
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function windowOf(files: readonly SpoolFile[], bytes: number): Window {
  return {
    files,
    receipt: {
      v: 1,
      id: 'r-1',
      from: '2026-01-02',
      to: '2026-01-02',
      covers_from: '2026-01-02',
      covers_to: '2026-01-02',
      bytes,
      sha256: '',
      rows: files.reduce((sum, file) => sum + file.rows, 0),
      exports: files.length,
      header: files[0]?.header ?? [],
      columns: files[0]?.columns ?? [],
      split: files.length > 1 ? 'names' : 'none',
      verified_at: '2026-02-01T00:00:00.000Z',
      suppressed: 0,
      invalid_utf8: 0,
    },
    state: { version: 1, from_date: '2026-01-03' },
  };
}

/** A column type; `instant`: a datetime under a `timezone`; `object`: what `_rescued` is. */
export type PropertyKind = ColumnType | 'instant' | 'object';

/** A property of the catalog as `discover` describes it. */
export function propertyOf(kind: PropertyKind): object {
  if (kind === 'object') return { type: ['object', 'null'] };
  return kind === 'instant' ? TYPES.datetime.jsonSchema(true) : TYPES[kind].jsonSchema(false);
}

/** A stream whose properties are given by short names. */
export const streamOf = (
  name: StreamName,
  properties: Readonly<Record<string, PropertyKind>>,
  keys: readonly string[] = [],
): RecordStream => ({
  name,
  keys,
  properties: Object.fromEntries(Object.entries(properties).map(([key, kind]) => [key, propertyOf(kind)])),
});

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Bundles the entry of a thread into one file in `dir`, as the image has it. */
export async function workerEntry(dir: string): Promise<URL> {
  const outfile = join(dir, 'worker.mjs');
  await build({
    entryPoints: [join(ROOT, 'src/targets/records/worker.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    loader: { '.wasm': 'base64' },
    outfile,
    logLevel: 'error',
  });
  return pathToFileURL(outfile);
}
