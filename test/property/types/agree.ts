import { cellFits, TYPES } from '../../../src/types/index.ts';
import type { ColumnType } from '../../../src/types/type.ts';
import type { Zone } from '../../../src/types/zone.ts';
import { jsonBound } from '../../support/evidence.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const fitsBytes = (type: ColumnType, cell: string, zone: Zone | undefined): boolean => {
  const bytes = encoder.encode(`#${cell}#`);
  return cellFits(type, bytes, 1, bytes.length - 1, zone);
};

export const jsonOf = (type: ColumnType, cell: string, zone: Zone | undefined): string => {
  const bytes = encoder.encode(`#${cell}#`);
  const out = new Uint8Array(3 + jsonBound(bytes.length - 2));
  const end = TYPES[type].writeJson(bytes, 1, bytes.length - 1, out, 3, zone);
  return decoder.decode(out.subarray(3, end));
};

/** SQL that writes a typed value in the words of `comparable`. */
export function sqlComparable(type: ColumnType, value: string, asInstants: boolean): string {
  if (type === 'datetime') {
    const wall = asInstants ? `timezone('UTC', ${value})` : value;
    return `strftime(${wall}, '%Y-%m-%dT%H:%M:%S.%f')`;
  }
  if (type === 'long[]') return `CAST(to_json(CAST(${value} AS VARCHAR[])) AS VARCHAR)`;
  if (type === 'double[]') return `CAST(to_json(list_transform(${value}, lambda x: CAST(x AS VARCHAR))) AS VARCHAR)`;
  if (type === 'string[]') return `CAST(to_json(${value}) AS VARCHAR)`;
  return `CAST(${value} AS VARCHAR)`;
}

const number = (text: string | null) =>
  text === null ? null : Object.is(Number(text), -0) ? '-0' : String(Number(text));

/** The SQL answer in a form that equals `comparableJson` of the same value. */
export function comparableSql(type: ColumnType, text: string | boolean | null): unknown {
  if (text === null || typeof text === 'boolean') return text;
  if (type === 'double') return number(text);
  if (type === 'double[]') return (JSON.parse(text) as (string | null)[]).map(number);
  return type.endsWith('[]') ? JSON.parse(text) : text;
}

export function comparableJson(type: ColumnType, json: string): unknown {
  if (json === 'null') return null;
  if (type === 'boolean' || type === 'long') return json;
  if (type === 'double') return number(json);
  if (type === 'long[]' || type === 'double[]') {
    const items = json === '[]' ? [] : json.slice(1, -1).split(',');
    JSON.parse(json);
    return items.map((item) => (item === 'null' ? null : type === 'double[]' ? number(item) : item));
  }
  const value = JSON.parse(json);
  if (type !== 'datetime') return value;
  return String(value).replace('Z', '').padEnd('2026-01-02T03:04:05.000000'.length, '0');
}
