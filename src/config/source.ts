import schema from '../../schemas/source-config.json' with { type: 'json' };
import validate from '../../schemas/source-config.validator';
import type { Env } from '../base/env.ts';
import { MIN_KEY_LENGTH } from '../base/secrets.ts';
import { nfc } from '../base/text.ts';
import { EVENT_NAME_ALTERNATIVE, KNOWN_COLUMNS, REQUIRED_COLUMNS } from '../cells/csv/header.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../cells/types/column-types.ts';
import { isZoneName } from '../cells/types/zone.ts';
import { parseForConnector, type ValuesOf } from './parse.ts';
import { type Problem, problemOf } from './problems.ts';

/** What is wrong with a name of a zone that is not known, as a clause. */
export const UNKNOWN_ZONE = 'is no IANA name such as Asia/Seoul';

export type NameCondition = 'all' | 'include' | 'exclude';
export type SchemaMode = 'evolve' | 'freeze';

/** The keys of the Airbyte source, which the command line has, too. */
export const SOURCE_PART = { schema, validate, configOf, ruleProblems };

export const parseSourceConfig = (value: unknown, env: Env) => parseForConnector(SOURCE_PART, value, env);

/** The source's configuration: frozen, with every default filled in. */
export type SourceConfig = ReturnType<typeof parseSourceConfig>['config'];

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
    columnsDrop: nfcNames(values.columnsDrop),
    columnsHash: nfcNames(values.columnsHash),
  };
}

const nfcNames = (names: readonly string[]): readonly string[] => names.map(nfc);

const conditionOf = (conditionType: string | undefined, names: readonly string[]): NameCondition =>
  (conditionType ?? (names.length > 0 ? 'include' : 'all')) as NameCondition;

/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const NEVER_DROPPED = new Set([...REQUIRED_COLUMNS, EVENT_NAME_ALTERNATIVE]);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const NEVER_HASHED = new Set(
  [...KNOWN_COLUMNS.values()].filter(({ type }) => type === 'datetime').map(({ name }) => name),
);

function ruleProblems(config: ReturnType<typeof configOf>): Problem[] {
  const { timezone = 'UTC', startDate = '', endDate = startDate, hashKey, suppressionFile, suppressionKey } = config;
  const { columnsDrop, columnsHash, columnTypes } = config;
  const isKeyShort = hashKey !== undefined && hashKey.reveal().length < MIN_KEY_LENGTH;
  return [
    !isZoneName(timezone) && problemOf('timezone', UNKNOWN_ZONE),
    startDate > endDate && problemOf('start_date', `${startDate} is after end_date ${endDate}`),
    namesProblem(
      'column_types',
      [...columnTypes.keys()].filter((name) => !isColumnType(columnTypes.get(name))),
      (names) => `gives ${names} no type, wanted one of ${COLUMN_TYPES.join(', ')}`,
    ),
    conditionProblem('events', config.eventsCondition, config.events),
    conditionProblem('properties', config.propertiesCondition, config.properties),
    suppressionFile !== undefined &&
      suppressionKey === undefined &&
      missingBeside('suppression_key', 'suppression_file'),
    namesProblem(
      'columns_drop',
      columnsDrop.filter((name) => NEVER_DROPPED.has(name)),
      (names) => `has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
    ),
    namesProblem(
      'columns_hash',
      columnsHash.filter((name) => NEVER_HASHED.has(name)),
      (names) => `has ${names}: days and the cursor come from such times, which cannot be hashed`,
    ),
    namesProblem(
      'columns_hash',
      columnsHash.filter((name) => columnsDrop.includes(name)),
      (names) => `and columns_drop both have ${names}, wanted one of them for each column`,
    ),
    namesProblem(
      'column_types',
      columnsHash.filter((name) => (columnTypes.get(name) ?? 'string') !== 'string'),
      (names) => `gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
    ),
    columnsHash.length > 0 && hashKey === undefined && missingBeside('hash_key', 'columns_hash'),
    columnsHash.length > 0 && isKeyShort && problemOf('hash_key', SHORT_KEY),
  ].filter((problem) => problem !== false);
}

const SHORT_KEY = `is shorter than ${MIN_KEY_LENGTH} characters: make one, for instance with "openssl rand -hex 32"`;

const missingBeside = (key: string, otherKey: string): Problem => ({
  ...problemOf(key, `is missing beside ${otherKey}`),
  isMissing: true,
});

const conditionProblem = (key: 'events' | 'properties', condition: NameCondition, names: readonly string[]) =>
  condition === 'all' &&
  names.length > 0 &&
  problemOf(
    `${key}_condition_type`,
    `is all, under which the list ${key} would change nothing: wanted include or exclude`,
  );

/** The problem of a key, if any names break its rule. */
const namesProblem = (key: string, names: readonly string[], clauseOf: (names: string) => string) =>
  names.length > 0 && problemOf(key, clauseOf([...new Set(names)].join(', ')));
