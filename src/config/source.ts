import schema from '../../schemas/source-config.json' with { type: 'json' };
import validate from '../../schemas/source-config.validator';
import type { Env } from '../base/env.ts';
import { MIN_KEY_LENGTH } from '../base/secrets.ts';
import { nfc } from '../base/text.ts';
import { EVENT_NAME_ALTERNATIVE, KNOWN_COLUMNS, REQUIRED_COLUMNS } from '../cells/csv/header.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../cells/types/column-types.ts';
import { isZoneName } from '../cells/types/zone.ts';
import { parseForConnector } from './parse.ts';
import { missingBeside, type Problem, wrongValue } from './problems.ts';
import type { ValuesOf } from './values.ts';

/** What is wrong with a name of a zone that is not known, as a clause. */
export const UNKNOWN_ZONE = 'is no IANA name such as Asia/Seoul';

/** The keys of the Airbyte source, which the command line has, too. */
export const SOURCE_PART = { schema, validate, configOf, ruleProblems };

export const parseSourceConfig = (rawConfig: unknown, env: Env) => parseForConnector(SOURCE_PART, rawConfig, env);

/** The source's configuration: frozen, with every default filled in. */
export type SourceConfig = ReturnType<typeof parseSourceConfig>['config'];
export type NameCondition = SourceConfig['eventsCondition'];
export type SchemaMode = SourceConfig['schemaMode'];

function configOf({ eventsConditionType, propertiesConditionType, ...values }: ValuesOf<typeof schema>) {
  const columnTypes = Object.entries<ColumnType>(values.columnTypes);
  return {
    ...values,
    eventsCondition: eventsConditionType ?? defaultCondition(values.events),
    propertiesCondition: propertiesConditionType ?? defaultCondition(values.properties),
    columnTypes: new Map(columnTypes.map(([name, type]) => [nfc(name), type])) as ReadonlyMap<string, ColumnType>,
    columnsDrop: values.columnsDrop.map(nfc),
    columnsHash: values.columnsHash.map(nfc),
  };
}

const defaultCondition = (names: readonly string[]) => (names.length > 0 ? 'include' : 'all');

/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const NEVER_DROPPED = new Set([...REQUIRED_COLUMNS, EVENT_NAME_ALTERNATIVE]);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const NEVER_HASHED = new Set(
  [...KNOWN_COLUMNS.values()].filter(({ type }) => type === 'datetime').map(({ name }) => name),
);

function ruleProblems(config: ReturnType<typeof configOf>): (Problem | false)[] {
  return [...dayProblems(config), ...filterProblems(config), ...columnProblems(config), ...keyProblems(config)];
}

type Rules = typeof ruleProblems;

const dayProblems: Rules = ({ timezone, startDate = '', endDate }) => [
  timezone !== undefined && !isZoneName(timezone) && wrongValue('timezone', UNKNOWN_ZONE),
  endDate !== undefined && startDate > endDate && wrongValue('start_date', `${startDate} is after end_date ${endDate}`),
];

const filterProblems: Rules = ({ events, eventsCondition, properties, propertiesCondition }) => [
  eventsCondition === 'all' && events.length > 0 && uselessList('events'),
  propertiesCondition === 'all' && properties.length > 0 && uselessList('properties'),
];

const columnProblems: Rules = ({ columnsDrop, columnsHash, columnTypes }) => [
  wrongColumns(
    'column_types',
    [...columnTypes.keys()].filter((name) => !isColumnType(columnTypes.get(name))),
    (names) => `gives ${names} no type, wanted one of ${COLUMN_TYPES.join(', ')}`,
  ),
  wrongColumns(
    'columns_drop',
    columnsDrop.filter((name) => NEVER_DROPPED.has(name)),
    (names) => `has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
  ),
  wrongColumns(
    'columns_hash',
    columnsHash.filter((name) => NEVER_HASHED.has(name)),
    (names) => `has ${names}: days and the cursor come from such times, which cannot be hashed`,
  ),
  wrongColumns(
    'columns_hash',
    columnsHash.filter((name) => columnsDrop.includes(name)),
    (names) => `and columns_drop both have ${names}, wanted one of them for each column`,
  ),
  wrongColumns(
    'column_types',
    columnsHash.filter((name) => (columnTypes.get(name) ?? 'string') !== 'string'),
    (names) => `gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
  ),
];

const keyProblems: Rules = ({ columnsHash, hashKey, suppressionFile, suppressionKey }) => [
  suppressionFile !== undefined && suppressionKey === undefined && missingBeside('suppression_key', 'suppression_file'),
  columnsHash.length > 0 && hashKey === undefined && missingBeside('hash_key', 'columns_hash'),
  columnsHash.length > 0 &&
    hashKey !== undefined &&
    hashKey.reveal().length < MIN_KEY_LENGTH &&
    wrongValue(
      'hash_key',
      `is shorter than ${MIN_KEY_LENGTH} characters: make one, for instance with "openssl rand -hex 32"`,
    ),
];

/** The problem that a key has these columns; false if there are none. */
const wrongColumns = (key: string, names: readonly string[], clauseOf: (names: string) => string): Problem | false =>
  names.length > 0 && wrongValue(key, clauseOf([...new Set(names)].join(', ')));

/** The problem of a list beside the condition `all`. */
const uselessList = (key: 'events' | 'properties'): Problem =>
  wrongValue(
    `${key}_condition_type`,
    `is all, under which the list ${key} would change nothing: wanted include or exclude`,
  );
