import schema from '../../schemas/source-config.json' with { type: 'json' };
import validate from '../../schemas/source-config.validator';
import type { Env } from '../base/env.ts';
import { MIN_KEY_LENGTH } from '../base/secrets.ts';
import { nfc } from '../base/text.ts';
import { EVENT_NAME_ALTERNATIVE, KNOWN_COLUMNS, REQUIRED_COLUMNS, settingNames } from '../cells/header.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../cells/types/column-types.ts';
import { isZoneName } from '../cells/types/zone.ts';
import type { Fields } from './fields.ts';
import { parseConnectorConfig } from './parse.ts';
import { keyProblem, type Problem } from './problems.ts';

/** The keys of the Airbyte source, which the command line has, too. */
export const SOURCE_PART = {
  schema,
  validate,
  makeConfig,
  neededBeside: { suppression_key: 'suppression_file', hash_key: 'columns_hash' },
  ruleProblems,
};

export const parseSourceConfig = (rawConfig: unknown, env: Env) => parseConnectorConfig(SOURCE_PART, rawConfig, env);

/** The source's configuration: frozen, with every default filled in. */
export type SourceConfig = ReturnType<typeof parseSourceConfig>['config'];
export type NameCondition = SourceConfig['eventsCondition'];

function makeConfig({ eventsConditionType, propertiesConditionType, ...fields }: Fields<typeof schema>) {
  return {
    ...fields,
    eventsCondition: eventsConditionType ?? defaultCondition(fields.events),
    propertiesCondition: propertiesConditionType ?? defaultCondition(fields.properties),
    // A rule below refuses any other type.
    columnTypes: new Map(Object.entries(fields.columnTypes).map(([name, type]) => [nfc(name), type as ColumnType])),
    columnsDrop: fields.columnsDrop.map(nfc),
    columnsHash: fields.columnsHash.map(nfc),
  };
}

const defaultCondition = (names: readonly string[]) => (names.length > 0 ? 'include' : 'all');

/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const NEVER_DROPPED = new Set([...REQUIRED_COLUMNS, EVENT_NAME_ALTERNATIVE]);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const NEVER_HASHED = new Set(
  [...KNOWN_COLUMNS.values()].filter(({ type }) => type === 'datetime').map(({ name }) => name),
);

/** The rules of days, of filters, of columns, and of keys. */
function* ruleProblems(config: ReturnType<typeof makeConfig>): Iterable<Problem> {
  const { timezone, startDate, endDate, columnTypes, columnsDrop, columnsHash, hashKey } = config;
  if (timezone !== undefined && !isZoneName(timezone))
    yield keyProblem('timezone', 'is no IANA name such as Asia/Seoul');
  if (startDate !== undefined && endDate !== undefined && startDate > endDate)
    yield keyProblem('start_date', `${startDate} is after end_date ${endDate}`);

  for (const key of ['events', 'properties'] as const) {
    if (config[`${key}Condition`] !== 'all' || config[key].length === 0) continue;
    const clause = `is all, under which the list ${key} would change nothing: wanted include or exclude`;
    yield keyProblem(`${key}_condition_type`, clause);
  }

  yield* columnProblems(
    'column_types',
    [...columnTypes.keys()].filter((name) => !isColumnType(columnTypes.get(name))),
    (names) => `gives ${names} no type, wanted one of ${COLUMN_TYPES.join(', ')}`,
  );
  yield* columnProblems(
    'columns_drop',
    columnsDrop.filter((name) => NEVER_DROPPED.has(name)),
    (names) => `has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
  );
  yield* columnProblems(
    'columns_hash',
    columnsHash.filter((name) => NEVER_HASHED.has(name)),
    (names) => `has ${names}: days and the cursor come from such times, which cannot be hashed`,
  );
  yield* columnProblems(
    'columns_hash',
    columnsHash.filter((name) => columnsDrop.includes(name)),
    (names) => `and columns_drop both have ${names}, wanted one of them for each column`,
  );
  // An export may have `df_event_name` under the other name, which is then the hashed column.
  const isHashed = (name: string) => settingNames(name, []).some((settingName) => columnsHash.includes(settingName));
  yield* columnProblems(
    'column_types',
    [...columnTypes.keys()].filter((name) => isHashed(name) && columnTypes.get(name) !== 'string'),
    (names) => `gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
  );

  if (columnsHash.length > 0 && hashKey !== undefined && hashKey.reveal().length < MIN_KEY_LENGTH) {
    const advice = 'make one, for instance with "openssl rand -hex 32"';
    yield keyProblem('hash_key', `is shorter than ${MIN_KEY_LENGTH} characters: ${advice}`);
  }
}

/** One problem with a key for all of these columns, if there are any. */
const columnProblems = (key: string, columns: readonly string[], clauseOf: (names: string) => string): Problem[] =>
  columns.length === 0 ? [] : [keyProblem(key, clauseOf([...new Set(columns)].join(', ')))];
