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

/** A value in the one form in which those of SQL and of JSON are compared. */
type Comparable = string | boolean | null | readonly (string | null)[];

/** SQL that writes a typed value in the words of `comparableSql`. */
export function sqlComparable(type: ColumnType, value: string, asInstants: boolean): string {
  switch (type) {
    case 'boolean':
    case 'long':
    case 'double':
    case 'date':
    case 'string':
      return `CAST(${value} AS VARCHAR)`;
    case 'datetime':
      return `strftime(${asInstants ? `timezone('UTC', ${value})` : value}, '%Y-%m-%dT%H:%M:%S.%f')`;
    case 'long[]':
      return `CAST(to_json(CAST(${value} AS VARCHAR[])) AS VARCHAR)`;
    case 'double[]':
      return `CAST(to_json(list_transform(${value}, lambda x: CAST(x AS VARCHAR))) AS VARCHAR)`;
    case 'string[]':
      return `CAST(to_json(${value}) AS VARCHAR)`;
  }
}

const number = (text: string): string => (Object.is(Number(text), -0) ? '-0' : String(Number(text)));
const numberOrNull = (text: string | null): string | null => (text === null ? null : number(text));

/** The SQL answer in a form that equals `comparableJson` of the same value. */
export function comparableSql(type: ColumnType, text: string | boolean | null): Comparable {
  if (text === null || typeof text === 'boolean') return text;
  switch (type) {
    case 'boolean':
    case 'long':
    case 'date':
    case 'datetime':
    case 'string':
      return text;
    case 'double':
      return number(text);
    case 'long[]':
    case 'string[]':
      return JSON.parse(text);
    case 'double[]':
      return (JSON.parse(text) as (string | null)[]).map(numberOrNull);
  }
}

export function comparableJson(type: ColumnType, json: string): Comparable {
  if (json === 'null') return null;
  switch (type) {
    case 'boolean':
    case 'long':
      return json;
    case 'double':
      return number(json);
    case 'date':
    case 'string':
    case 'string[]':
      return JSON.parse(json);
    case 'datetime':
      return String(JSON.parse(json)).replace('Z', '').padEnd('2026-01-02T03:04:05.000000'.length, '0');
    case 'long[]':
      return itemTexts(json);
    case 'double[]':
      return itemTexts(json).map(numberOrNull);
  }
}

/** The texts of the items of a JSON list of numbers and nulls: no digit is lost. */
function itemTexts(json: string): (string | null)[] {
  JSON.parse(json);
  const items = json === '[]' ? [] : json.slice(1, -1).split(',');
  return items.map((item) => (item === 'null' ? null : item));
}
