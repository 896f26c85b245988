import { tmpdir } from 'node:os';
import schema from '../../schemas/source-config.json' with { type: 'json' };
import valid from '../../schemas/source-config.validator';
import { isDay } from '../base/days.ts';
import { DAY_MS, parseDuration } from '../base/durations.ts';
import type { Env } from '../base/env.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../cells/types/type.ts';
import { isZoneName } from '../cells/types/zone.ts';
import { cleanBaseUrl } from './base-url.ts';
import { columnListProblems } from './column-lists.ts';
import { type ParsedConfig, parseConfig, serviceProblems, type ValuesOf } from './parse.ts';
import type { Problem } from './problems.ts';

export const DEFAULT_HISTORY_DAYS: number = schema.properties.history_days.default;

export type NameCondition = 'all' | 'include' | 'exclude';
export type SchemaMode = 'evolve' | 'freeze' | 'fail';

/** Converts what the schema cannot express: types narrower than a text, and values that become others. */
function configOf({
  eventsConditionType,
  propertiesConditionType,
  stallMinutes,
  lockWait,
  retention,
  ...values
}: ValuesOf<typeof schema>) {
  const types: ReadonlyMap<string, ColumnType> = new Map(
    Object.entries<ColumnType>(values.columnTypes).map(([name, type]) => [name.normalize('NFC'), type]),
  );
  return {
    ...values,
    baseUrl: cleanBaseUrl(values.baseUrl),
    eventsCondition: eventsConditionType as NameCondition,
    propertiesCondition: propertiesConditionType as NameCondition,
    delivery: values.delivery as 'auto' | 'fresh' | 'settled',
    toDateInclusive: values.toDateInclusive as 'auto' | 'true' | 'false',
    onGap: values.onGap as 'fail' | 'warn',
    schemaMode: values.schemaMode as SchemaMode,
    emptyBody: values.emptyBody as 'retry' | 'no_rows',
    columnTypes: types,
    stallMs: Math.max(1, Math.round(stallMinutes * 60_000)),
    lockWaitMs: parseDuration(lockWait) ?? 30_000,
    retentionMs: parseDuration(retention) ?? DAY_MS,
    spoolDir: values.spoolDir ?? tmpdir(),
  };
}

/** The source's configuration: frozen, every default filled in. */
export type SourceConfig = Readonly<ReturnType<typeof configOf>>;

export const parseSourceConfig = (
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): ParsedConfig<SourceConfig> => parseConfig({ schema, valid, configOf, problems }, value, env, names);

function problems(filled: Readonly<Record<string, unknown>>): Problem[] {
  const out = serviceProblems(filled, 'export_token');
  const add = (name: string, text: string) => out.push({ key: name, text });
  const textUnder = (name: string) => (typeof filled[name] === 'string' ? filled[name] : '');
  const [start, end, zone] = [textUnder('start_date'), textUnder('end_date'), textUnder('timezone')];
  if (zone !== '' && !isZoneName(zone)) {
    add('timezone', `timezone is ${JSON.stringify(zone)}, wanted an IANA name such as Asia/Seoul`);
  }
  if (isDay(start) && isDay(end) && start > end) add('start_date', `start_date ${start} is after end_date ${end}`);
  for (const [column, type] of Object.entries(filled.column_types ?? {})) {
    if (!isColumnType(type)) {
      const wanted = `wanted one of ${COLUMN_TYPES.join(', ')}`;
      add('column_types', `column_types.${column} is ${JSON.stringify(type)}, ${wanted}`);
    }
  }
  if (textUnder('suppression_file') !== '' && filled.suppression_key === undefined)
    add('suppression_key', 'suppression_key is missing beside suppression_file');
  return [...out, ...columnListProblems(filled)];
}
