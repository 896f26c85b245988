import type { StreamStats } from '../../../src/airbyte/records/record-encoder.ts';
import { writeRecords } from '../../../src/airbyte/records/record-writer.ts';
import { PROFILE_STREAM, type StreamName, type StreamSchemas } from '../../../src/airbyte/records/streams.ts';
import { type ColumnType, codecOf } from '../../../src/cells/types/column-types.ts';
import { zoneOf } from '../../../src/cells/types/zone.ts';
import { EVENTS, USER_PROFILES } from '../../../src/table/tables.ts';
import { Days } from './days.ts';

export const EMITTED_AT = 1_760_000_000_000;

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

interface Written {
  /** In the order in which the streams were passed. */
  readonly streams: readonly StreamStats[];
  readonly text: string;
  readonly lines: RecordLine[];
  /** The data of one stream's records. */
  data(stream: StreamName): Record<string, unknown>[];
}

export interface WriteOptions {
  readonly timezone?: string | undefined;
  readonly signal?: AbortSignal;
  /** Called with every block of lines that is written. */
  readonly onBlock?: (lines: Uint8Array) => void;
}

/** The writer run over files of days. */
export class RecordFixture extends Days {
  async write(
    csv: string | readonly string[],
    streams: readonly StreamSchemas[],
    options: WriteOptions = {},
  ): Promise<Written> {
    this.timezone = options.timezone;
    const { files } = this.ofCsv('2026-01-01', [csv].flat());
    const parts: Buffer[] = [];
    const keep = async (bytes: Uint8Array) => {
      parts.push(Buffer.from(bytes));
      options.onBlock?.(bytes);
    };
    const { timezone, signal = this.signal } = options;
    const table = streams[0]?.name === PROFILE_STREAM ? USER_PROFILES : EVENTS;
    const written = await writeRecords({ files }, streams, keep, { table, timezone, emittedAt: EMITTED_AT, signal });
    const text = Buffer.concat(parts).toString();
    const lines = text
      .split('\n')
      .slice(0, -1)
      .map((line): RecordLine => JSON.parse(line));
    return {
      streams: written,
      text,
      lines,
      data: (stream) => lines.filter((line) => line.record.stream === stream).map((line) => line.record.data),
    };
  }
}

/** A column type; `instant`: a datetime under a `timezone`; `object`: what `_rescued` is. */
export type PropertyKind = ColumnType | 'instant' | 'object';

/** A property of the catalog as `discover` describes it. */
export function propertyOf(kind: PropertyKind): object {
  if (kind === 'object') return { type: ['object', 'null'] };
  return kind === 'instant' ? codecOf('datetime', zoneOf('UTC')).jsonSchema : codecOf(kind, undefined).jsonSchema;
}

/** A stream whose properties are given by short names. */
export const streamOf = (name: StreamName, properties: Readonly<Record<string, PropertyKind>>): StreamSchemas => ({
  name,
  schemas: new Map(Object.entries(properties).map(([property, kind]) => [property, propertyOf(kind)])),
});
