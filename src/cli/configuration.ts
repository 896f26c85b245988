import { existsSync } from 'node:fs';
import destinationSchema from '../../schemas/destination-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { MASK } from '../base/secrets.ts';
import { type ColumnType, isColumnType } from '../cells/types/type.ts';
import { type DestinationConfig, parseDestinationConfig } from '../config/destination.ts';
import { type ConfigSchema, readEnvironment, variableOf } from '../config/environment.ts';
import { objectOf, type ParsedConfig } from '../config/parse.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';
import { readJsonFile } from '../fs/json-file.ts';
import type { Context } from './context.ts';

export const SOURCE_FILE = 'dfinery.json';
export const DESTINATION_FILE = 'dfinery-destination.json';

interface Kind<C> {
  readonly schema: ConfigSchema;
  /** The file that is read by default. */
  readonly defaultFile: string;
  /** Values for required keys that a command which calls no service does not use. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Keys for which such a command reads the configuration also where there is no file. */
  readonly triggers: readonly string[];
  parse(value: unknown, env: Env, names: ReadonlyMap<string, string>): ParsedConfig<C>;
}

const SOURCE: Kind<SourceConfig> = {
  schema: sourceSchema,
  defaultFile: SOURCE_FILE,
  placeholders: { base_url: 'https://host', service_id: '-', export_token: '-' },
  triggers: ['columns_drop', 'columns_hash'],
  parse: parseSourceConfig,
};
const DESTINATION: Kind<DestinationConfig> = {
  schema: destinationSchema,
  defaultFile: DESTINATION_FILE,
  placeholders: { import_token: '-' },
  triggers: ['service_id'],
  parse: parseDestinationConfig,
};

/**
 * The source configuration from the environment over `--config` (default: dfinery.json here); unknown keys are refused.
 */
export const loadSourceConfig = (path: string | undefined, context: Context): SourceConfig =>
  load(SOURCE, path, context).config;

/** The same, and for each key its value (secrets masked) and where that came from. */
export function explainSourceConfig(path: string | undefined, context: Context) {
  const { config, file, environment } = load(SOURCE, path, context);
  return { config, settings: settingsOf(sourceSchema, file, environment) };
}

export const loadDestinationConfig = (path: string | undefined, context: Context): DestinationConfig =>
  load(DESTINATION, path, context).config;

/** For a command that only reads a ledger and needs no token; undefined if no service is configured. */
export const findDestinationConfig = (path: string | undefined, context: Context): DestinationConfig | undefined =>
  find(DESTINATION, path, context);

/**
 * For a command that reads a local file and calls no service; undefined if no file or list of columns is configured.
 */
export const findSourceConfig = (path: string | undefined, context: Context): SourceConfig | undefined =>
  find(SOURCE, path, context);

function find<C>(kind: Kind<C>, path: string | undefined, context: Context): C | undefined {
  const { names } = readEnvironment(kind.schema, context.env);
  const isWanted = path !== undefined || existsSync(kind.defaultFile) || kind.triggers.some((key) => names.has(key));
  return isWanted ? load(kind, path, context, kind.placeholders).config : undefined;
}

/** The environment wins over the file. If `placeholders` is given, the file may be missing. */
function load<C>(
  { schema, defaultFile, parse }: Kind<C>,
  path: string | undefined,
  { env, redactor }: Context,
  placeholders?: object,
) {
  const environment = readEnvironment(schema, env);
  const isThere = path !== undefined || existsSync(defaultFile);
  const missing = isThere || placeholders ? [] : schema.required.filter((key) => !environment.names.has(key));
  if (missing.length > 0) {
    const made = defaultFile === SOURCE_FILE ? 'make one with dfinery-elt init' : 'write one';
    const variables = missing.map(variableOf).join(', ');
    throw configError(`there is no ${defaultFile} here: ${made}, name another with --config, or set ${variables}.`);
  }
  const file = isThere ? objectOf(readJsonFile(path ?? defaultFile, 'the configuration file')) : {};
  const value = { ...placeholders, ...file, ...environment.values };
  const { config, secrets, unknown } = parse(value, () => undefined, environment.names);
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) throw configError(`the configuration has unknown keys: ${unknown.join(', ')}.`);
  return { config, file, environment };
}

function settingsOf(
  { properties }: ConfigSchema,
  file: Readonly<Record<string, unknown>>,
  { values, names }: ReturnType<typeof readEnvironment>,
): Record<string, object> {
  const settings = Object.entries(properties).map(([key, property]): [string, object] => {
    const shown = (value: unknown) => (property.airbyte_secret && value !== undefined ? MASK : value);
    const variable = names.get(key);
    if (variable !== undefined) return [key, { value: shown(values[key]), from: 'environment', variable }];
    const written = file[key] ?? undefined;
    if (written !== undefined) return [key, { value: shown(written), from: 'file' }];
    return [key, { value: property.default ?? null, from: 'default' }];
  });
  return Object.fromEntries(settings);
}

/** The types by source name of a pinned schema file, as `discover` prints it; undefined where none is given. */
export function pinnedTypes(path: string | undefined): ReadonlyMap<string, ColumnType> | undefined {
  if (path === undefined) return undefined;
  const value = readJsonFile(path, 'the schema file');
  const problem = (what: string) =>
    configError(`the schema file ${path} ${what}: make one with dfinery-elt discover.`, { where: { file: path } });
  if (!isObject(value) || !Array.isArray(value.columns)) throw problem('has no list "columns"');
  if ('v' in value && value.v !== 1) throw problem('is of a newer version');
  const types = new Map<string, ColumnType>();
  for (const [i, column] of value.columns.entries()) {
    const { source, type } = column ?? {};
    if (typeof source !== 'string' || !isColumnType(type))
      throw problem(`has no source name and type in entry ${i + 1}`);
    types.set(source, type);
  }
  return types;
}

/** What a target is given of a configuration, and of the process. */
export function targetSettings(config: SourceConfig, { env, clock, logger, signal }: Context) {
  const { lockWaitMs, memoryLimit, spoolDir, retentionMs, timezone, columnTypes, schemaMode } = config;
  const place = { lockWaitMs, memoryLimit, spoolDir, retentionMs };
  return { ...place, timezone, columnTypes, schemaMode, env, clock, logger, signal };
}
