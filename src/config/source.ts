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

/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const NEVER_DROPPED = new Set([...REQUIRED_COLUMNS, EVENT_NAME_ALTERNATIVE]);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const NEVER_HASHED = new Set(
  [...KNOWN_COLUMNS.values()].filter(({ type }) => type === 'datetime').map(({ name }) => name),
);

function ruleProblems(config: ReturnType<typeof configOf>): Problem[] {
  const { timezone = 'UTC', startDate = '', endDate = startDate, hashKey, suppressionFile, suppressionKey } = config;
  const { columnsDrop: dropped, columnsHash: hashed, columnTypes } = config;
  const rules = [
    { key: 'timezone', isBroken: !isZoneName(timezone), clause: UNKNOWN_ZONE },
    { key: 'start_date', isBroken: startDate > endDate, clause: `${startDate} is after end_date ${endDate}` },
    namesRule(
      'column_types',
      [...columnTypes.keys()].filter((name) => !isColumnType(columnTypes.get(name))),
      (names) => `gives ${names} no type, wanted one of ${COLUMN_TYPES.join(', ')}`,
    ),
    conditionRule('events', config.eventsCondition, config.events),
    conditionRule('properties', config.propertiesCondition, config.properties),
    {
      key: 'suppression_key',
      isBroken: suppressionFile !== undefined && suppressionKey === undefined,
      isMissing: true,
      clause: 'is missing beside suppression_file',
    },
    namesRule(
      'columns_drop',
      dropped.filter((name) => NEVER_DROPPED.has(name)),
      (names) => `has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
    ),
    namesRule(
      'columns_hash',
      hashed.filter((name) => NEVER_HASHED.has(name)),
      (names) => `has ${names}: days and the cursor come from such times, which cannot be hashed`,
    ),
    namesRule(
      'columns_hash',
      hashed.filter((name) => dropped.includes(name)),
      (names) => `and columns_drop both have ${names}, wanted one of them for each column`,
    ),
    namesRule(
      'column_types',
      hashed.filter((name) => (columnTypes.get(name) ?? 'string') !== 'string'),
      (names) => `gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
    ),
    {
      key: 'hash_key',
      isBroken: hashed.length > 0 && (hashKey?.reveal().length ?? 0) < MIN_KEY_LENGTH,
      isMissing: hashKey === undefined,
      clause:
        hashKey === undefined
          ? 'is missing beside columns_hash'
          : `is shorter than ${MIN_KEY_LENGTH} characters: make one, for instance with "openssl rand -hex 32"`,
    },
  ];
  return rules
    .filter(({ isBroken }) => isBroken)
    .map(({ key, clause, isMissing = false }) => ({ ...problemOf(key, clause), isMissing }));
}

const conditionRule = (key: 'events' | 'properties', condition: NameCondition, names: readonly string[]) => ({
  key: `${key}_condition_type`,
  isBroken: condition === 'all' && names.length > 0,
  clause: `is all, under which the list ${key} would change nothing: wanted include or exclude`,
});

/** A rule that these names break. */
const namesRule = (key: string, names: readonly string[], clauseOf: (names: string) => string) => ({
  key,
  isBroken: names.length > 0,
  clause: clauseOf([...new Set(names)].join(', ')),
});
