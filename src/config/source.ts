import schema from '../../schemas/source-config.json' with { type: 'json' };
import validate from '../../schemas/source-config.validator';
import { isDay } from '../base/days.ts';
import type { Env } from '../base/env.ts';
import { isObject } from '../base/json.ts';
import { MIN_KEY_LENGTH } from '../base/secrets.ts';
import { EVENT_NAME_ALTERNATIVE, KNOWN_COLUMNS, nfc, REQUIRED_COLUMNS } from '../cells/csv/header.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../cells/types/codec.ts';
import { isZoneName } from '../cells/types/zone.ts';
import { parseForConnector, type ValuesOf } from './parse.ts';
import { type Problem, problemOf } from './problems.ts';

export const DEFAULT_HISTORY_DAYS: number = schema.properties.history_days.default;

export type NameCondition = 'all' | 'include' | 'exclude';
export type SchemaMode = 'evolve' | 'freeze';

function configOf({ eventsConditionType, propertiesConditionType, ...values }: ValuesOf<typeof schema>) {
  const types = Object.entries<ColumnType>(values.columnTypes).map(([name, type]) => [nfc(name), type] as const);
  const columnTypes: ReadonlyMap<string, ColumnType> = new Map(types);
  return {
    ...values,
    eventsCondition: conditionOf(eventsConditionType, values.events),
    propertiesCondition: conditionOf(propertiesConditionType, values.properties),
    toDateInclusive: values.toDateInclusive as 'auto' | 'true' | 'false',
    onGap: values.onGap as 'fail' | 'warn',
    schemaMode: values.schemaMode as SchemaMode,
    columnTypes,
    columnsDrop: nfcs(values.columnsDrop),
    columnsHash: nfcs(values.columnsHash),
  };
}

const nfcs = (names: readonly string[]): readonly string[] => names.map(nfc);

const conditionOf = (conditionType: string | undefined, names: readonly string[]): NameCondition =>
  (conditionType ?? (names.length > 0 ? 'include' : 'all')) as NameCondition;

/** The keys of the Airbyte source, which the command line has, too. */
export const SOURCE = { schema, validate, configOf, ruleProblems };

export const parseSourceConfig = (value: unknown, env: Env) => parseForConnector(SOURCE, value, env);

/** The source's configuration: frozen, with every default filled in. */
export type SourceConfig = ReturnType<typeof parseSourceConfig>['config'];

export const timezoneProblem = (zone: string): string | undefined =>
  isZoneName(zone) ? undefined : 'is no IANA name such as Asia/Seoul';

/** Values of a configuration by their keys, defaults included. */
type Values = Readonly<Record<string, unknown>>;

function ruleProblems(values: Values): Problem[] {
  return [
    ...zoneProblems(values),
    ...dateProblems(values),
    ...typeProblems(values),
    ...conditionProblems(values, 'events'),
    ...conditionProblems(values, 'properties'),
    ...suppressionProblems(values),
    ...columnListProblems(values),
    ...hashKeyProblems(values),
  ];
}

function zoneProblems({ timezone }: Values): Problem[] {
  const text = typeof timezone === 'string' ? timezoneProblem(timezone) : undefined;
  return text === undefined ? [] : [problemOf('timezone', text)];
}

function dateProblems({ start_date: start, end_date: end }: Values): Problem[] {
  if (typeof start !== 'string' || typeof end !== 'string') return [];
  if (!isDay(start) || !isDay(end) || start <= end) return [];
  return [problemOf('start_date', `${start} is after end_date ${end}`)];
}

const typeProblems = ({ column_types: types }: Values): Problem[] =>
  Object.entries(types ?? {})
    .filter(([, type]) => !isColumnType(type))
    .map(([column]) => problemOf('column_types', `gives ${column} no type, wanted one of ${COLUMN_TYPES.join(', ')}`));

/** A list of names needs a condition under which it filters something. */
function conditionProblems(values: Values, key: 'events' | 'properties'): Problem[] {
  const conditionKey = `${key}_condition_type`;
  const names = values[key];
  if (values[conditionKey] !== 'all' || !Array.isArray(names) || names.length === 0) return [];
  const text = `is all, under which the list ${key} would change nothing: wanted include or exclude`;
  return [problemOf(conditionKey, text)];
}

const suppressionProblems = ({ suppression_file: file, suppression_key: key }: Values): Problem[] =>
  file !== undefined && key === undefined
    ? [{ ...problemOf('suppression_key', 'is missing beside suppression_file'), isMissing: true }]
    : [];

/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const NEVER_DROPPED = new Set([...REQUIRED_COLUMNS, EVENT_NAME_ALTERNATIVE]);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const NEVER_HASHED = new Set(
  [...KNOWN_COLUMNS.values()].filter(({ type }) => type === 'datetime').map(({ name }) => name),
);

/** The problems of `columns_drop`, `columns_hash` and `column_types` in combination. */
function columnListProblems(values: Values): Problem[] {
  const [drop, hash] = [columnNamesIn(values.columns_drop), columnNamesIn(values.columns_hash)];
  const types = Object.entries(isObject(values.column_types) ? values.column_types : {});
  const columnsWithOtherType = new Set(types.flatMap(([name, type]) => (type === 'string' ? [] : [nfc(name)])));
  return [
    ...columnsProblem(
      'columns_drop',
      drop.filter((name) => NEVER_DROPPED.has(name)),
      (names) => `has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
    ),
    ...columnsProblem(
      'columns_hash',
      hash.filter((name) => NEVER_HASHED.has(name)),
      (names) => `has ${names}: days and the cursor come from such times, which cannot be hashed`,
    ),
    ...columnsProblem(
      'columns_hash',
      hash.filter((name) => drop.includes(name)),
      (names) => `and columns_drop both have ${names}, wanted one of them for each column`,
    ),
    ...columnsProblem(
      'column_types',
      hash.filter((name) => columnsWithOtherType.has(name)),
      (names) => `gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
    ),
  ];
}

/** The problem that a key has with these columns, if there are any. */
const columnsProblem = (key: string, columns: readonly string[], clauseOf: (names: string) => string): Problem[] =>
  columns.length === 0 ? [] : [problemOf(key, clauseOf([...new Set(columns)].join(', ')))];

/** A list to hash needs a key that nobody can guess. */
function hashKeyProblems({ columns_hash: hash, hash_key: key }: Values): Problem[] {
  if (columnNamesIn(hash).length === 0) return [];
  if (key === undefined) return [{ ...problemOf('hash_key', 'is missing beside columns_hash'), isMissing: true }];
  if (typeof key !== 'string' || key.length >= MIN_KEY_LENGTH) return [];
  const text = `is shorter than ${MIN_KEY_LENGTH} characters: make one, for instance with "openssl rand -hex 32"`;
  return [problemOf('hash_key', text)];
}

const columnNamesIn = (list: unknown): string[] =>
  Array.isArray(list) ? list.filter((name) => typeof name === 'string').map(nfc) : [];
