import { existsSync } from 'node:fs';
import destinationSchema from '../../schemas/destination-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { type DestinationConfig, parseDestinationConfig } from '../config/destination.ts';
import {
  type ConfigSchema,
  type EnvironmentValues,
  FORMS,
  readEnvironment,
  variableOf,
  variablesOf,
} from '../config/environment.ts';
import { objectOf, type Parsed } from '../config/parse.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';
import { readJsonFile } from '../fs/json-file.ts';
import type { Context } from './context.ts';
import { tableLines } from './table.ts';

export const SOURCE_FILE = 'dfinery.json';
export const DESTINATION_FILE = 'dfinery-destination.json';
const MASK = '******';

/** One configuration key: its value (secrets masked), and where that came from. */
export interface Setting {
  readonly value: unknown;
  readonly from: 'file' | 'environment' | 'default';
  /** The environment variable. */
  readonly variable?: string;
}

/** One of the two configurations: its schema, the file that is read by default, and what parses it. */
interface Kind<C> {
  readonly schema: ConfigSchema;
  readonly usual: string;
  parse(value: unknown, env: Env, names: ReadonlyMap<string, string>): Parsed<C>;
}

const SOURCE: Kind<SourceConfig> = { schema: sourceSchema, usual: SOURCE_FILE, parse: parseSourceConfig };
const DESTINATION: Kind<DestinationConfig> = {
  schema: destinationSchema,
  usual: DESTINATION_FILE,
  parse: parseDestinationConfig,
};

/** The source configuration from the environment over `--config` (default: dfinery.json here); unknown keys are refused. */
export const loadSourceConfig = (path: string | undefined, context: Context): SourceConfig =>
  load(SOURCE, path, context).config;

/** Loads the source configuration, and tells for each key where its value came from. */
export function explainSourceConfig(path: string | undefined, context: Context) {
  const { config, file, environment } = load(SOURCE, path, context);
  return { config, settings: settingsOf(sourceSchema, file, environment) };
}

/** Loads the destination's configuration from the environment over `--config`; unknown keys are refused. */
export const loadDestinationConfig = (path: string | undefined, context: Context): DestinationConfig =>
  load(DESTINATION, path, context).config;

/**
 * Loads the destination's configuration for a command that only reads a ledger and needs no token; undefined if no
 * service is configured.
 */
export const findDestinationConfig = (path: string | undefined, context: Context): DestinationConfig | undefined =>
  find(DESTINATION, path, context, { import_token: '-' }, ['service_id']);

/**
 * Loads the source configuration for a command that reads a local file and calls no service; undefined if there is
 * neither `--config`, nor a dfinery.json in this folder, nor a list of columns in the environment.
 */
export function findSourceConfig(path: string | undefined, context: Context): SourceConfig | undefined {
  const unused = { base_url: 'https://host', service_id: '-', export_token: '-' };
  return find(SOURCE, path, context, unused, ['columns_drop', 'columns_hash']);
}

/**
 * Loads a configuration for a command that does not call the service; `unused` holds values for required keys that it
 * does not use.
 */
function find<C>(
  kind: Kind<C>,
  path: string | undefined,
  context: Context,
  unused: Readonly<Record<string, string>>,
  wanted: readonly string[],
): C | undefined {
  const { names } = readEnvironment(kind.schema, context.env);
  const isWanted = path !== undefined || existsSync(kind.usual) || wanted.some((key) => names.has(key));
  return isWanted ? load(kind, path, context, unused).config : undefined;
}

/** Loads a configuration; the environment wins over the file. If `unused` is given, the file may be missing. */
function load<C>(
  { schema, usual, parse }: Kind<C>,
  path: string | undefined,
  { env, redactor }: Context,
  unused?: Readonly<Record<string, string>>,
) {
  const environment = readEnvironment(schema, env);
  const isThere = path !== undefined || existsSync(usual);
  const missing = isThere || unused ? [] : schema.required.filter((key) => !environment.names.has(key));
  if (missing.length > 0) {
    const made = usual === SOURCE_FILE ? 'make one with dfinery-elt init' : 'write one';
    const variables = missing.map(variableOf).join(', ');
    throw configError(`there is no ${usual} here: ${made}, name another with --config, or set ${variables}.`);
  }
  const file = isThere ? objectOf(readJsonFile(path ?? usual, 'the configuration file')) : {};
  const value = { ...unused, ...file, ...environment.values };
  const { config, secrets, unknown } = parse(value, () => undefined, environment.names);
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) throw configError(`the configuration has unknown keys: ${unknown.join(', ')}.`);
  return { config, file, environment };
}

function settingsOf(
  { properties }: ConfigSchema,
  file: Readonly<Record<string, unknown>>,
  { values, names }: EnvironmentValues,
): Record<string, Setting> {
  const settings = Object.entries(properties).map(([key, property]): [string, Setting] => {
    const shown = (value: unknown) => (property.airbyte_secret && value !== undefined ? MASK : value);
    const variable = names.get(key);
    if (variable !== undefined) return [key, { value: shown(values[key]), from: 'environment', variable }];
    const written = file[key] ?? undefined;
    if (written !== undefined) return [key, { value: shown(written), from: 'file' }];
    return [key, { value: property.default ?? null, from: 'default' }];
  });
  return Object.fromEntries(settings);
}

function help(schema: ConfigSchema, unused: readonly string[] = []): string {
  const rows = variablesOf(schema)
    .filter(({ key }) => !unused.includes(key))
    .map(({ name, key, property }) => {
      const { type = 'string', enum: choices, airbyte_secret: isSecret, default: usual } = property;
      const form = isSecret ? 'secret; also …_FILE' : (choices?.join(' | ') ?? FORMS[type]);
      const shown = usual === undefined || JSON.stringify(usual) === '{}' ? '' : String(usual);
      return [name, form, schema.required.includes(key) ? 'required' : shown];
    });
  return [
    'Each configuration key is an environment variable too, and wins there over the file; without a file they are enough:',
    ...tableLines(['variable', 'value', 'default'], rows),
  ].join('\n');
}

/** Text at the end of the help of commands that read the source configuration. */
export const sourceEnvironmentHelp = (): string => help(sourceSchema);

/**
 * Text at the end of the help of `forget`. It leaves out `dry_run`, which `--confirm` replaces (S38), and `streams`,
 * since a list has none.
 */
export const destinationEnvironmentHelp = (): string => help(destinationSchema, ['dry_run', 'streams']);
