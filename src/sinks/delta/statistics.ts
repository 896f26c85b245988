import type { NewFile } from '../files/log.ts';
import type { LoggedColumn } from '../files/statistics.ts';
import type { Field } from './schema.ts';

/** How the values of a type that has least and greatest ones are written, as JSON: a long keeps every digit (S44). */
const WRITTEN: Readonly<Record<string, (text: string) => string | undefined>> = {
  long: (text) => text,
  timestamp: (text) => instant(text, 'Z'),
  timestamp_ntz: (text) => instant(text, ''),
};

const INSTANT = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?$/;

/** With milliseconds, which is what readers take; undefined for a value between two of them, which would be cut. */
function instant(text: string, zone: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = ''] = match;
  const digits = fraction.padEnd(6, '0');
  return digits.endsWith('000') ? `"${date}T${time}.${digits.slice(0, 3)}${zone}"` : undefined;
}

/** The `stats` of a file, as its entry in the log has them. */
export function statsText(
  { rows }: NewFile,
  columns: ReadonlyMap<string, LoggedColumn>,
  fields: readonly Field[],
): string {
  const [lows, highs, nulls]: [string[], string[], string[]] = [[], [], []];
  for (const { name, type } of fields) {
    const own = columns.get(name);
    if (own === undefined) continue;
    const key = JSON.stringify(name);
    nulls.push(`${key}:${own.absent}`);
    const write = typeof type === 'string' ? WRITTEN[type] : undefined;
    const [low, high] = [own.least, own.greatest].map((text) => (text === null ? undefined : write?.(text)));
    if (low !== undefined) lows.push(`${key}:${low}`);
    if (high !== undefined) highs.push(`${key}:${high}`);
  }
  const of = (members: string[]) => `{${members.join(',')}}`;
  return `{"numRecords":${rows},"minValues":${of(lows)},"maxValues":${of(highs)},"nullCount":${of(nulls)}}`;
}
