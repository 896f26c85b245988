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
  type Property,
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

interface Layers {
  readonly file: Readonly<Record<string, unknown>>;
  readonly environment: EnvironmentValues;
}

/** One of the two configurations: its schema, the file that is read by default, and what parses it. */
interface Kind<C> {
  readonly schema: ConfigSchema;
  readonly usual: string;
  parse(value: unknown, env: Env, names: ReadonlyMap<string, string>): Parsed<C>;
}

const SOURCE: Kind<SourceConfig> = {
  schema: sourceSchema,
  usual: SOURCE_FILE,
  parse: parseSourceConfig,
};

const DESTINATION: Kind<DestinationConfig> = {
  schema: destinationSchema,
  usual: DESTINATION_FILE,
  parse: parseDestinationConfig,
};

/** The source configuration from the environment over `--config` (default: dfinery.json here); unknown keys are refused. */
export function loadSourceConfig(path: string | undefined, context: Context): SourceConfig {
  return parse(SOURCE, readLayers(SOURCE, path, context), context);
}

/** The same, and for every key where its value came from. */
export function explainSourceConfig(path: string | undefined, context: Context) {
  const layers = readLayers(SOURCE, path, context);
  return { config: parse(SOURCE, layers, context), settings: settingsOf(sourceSchema, layers) };
}

/** The destination's configuration, in the same way. */
export function loadDestinationConfig(path: string | undefined, context: Context): DestinationConfig {
  return parse(DESTINATION, readLayers(DESTINATION, path, context), context);
}

/** The same for what only reads a ledger, which needs no token; undefined if no service is configured. */
export function findDestinationConfig(path: string | undefined, context: Context): DestinationConfig | undefined {
  return find(DESTINATION, path, context, { import_token: '-' }, ['service_id']);
}

/**
 * The source configuration as far as it concerns a local file, which needs no service. Undefined if there is
 * none: no `--config`, no dfinery.json here, no lists of columns in the environment.
 */
export function findSourceConfig(path: string | undefined, context: Context): SourceConfig | undefined {
  const unused = { base_url: 'https://host', service_id: '-', export_token: '-' };
  return find(SOURCE, path, context, unused, ['columns_drop', 'columns_hash']);
}

/** For a command that does not call the service: `unused` stands in for keys that it does not need. */
function find<C>(
  kind: Kind<C>,
  path: string | undefined,
  context: Context,
  unused: Readonly<Record<string, string>>,
  wanted: readonly string[],
): C | undefined {
  const { values } = readEnvironment(kind.schema, context.env);
  const isWanted = path !== undefined || existsSync(kind.usual) || wanted.some((key) => key in values);
  if (!isWanted) return undefined;
  const { file, environment } = readLayers({ ...kind, schema: { ...kind.schema, required: [] } }, path, context);
  return parse(kind, { file: { ...unused, ...file }, environment }, context);
}

/** The environment wins over the file. */
function parse<C>(kind: Kind<C>, { file, environment }: Layers, { redactor }: Context): C {
  const value = { ...file, ...environment.values };
  const { config, secrets, unknown } = kind.parse(value, () => undefined, environment.names);
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) throw configError(`the configuration has unknown keys: ${unknown.join(', ')}.`);
  return config;
}

function readLayers<C>({ schema, usual }: Kind<C>, path: string | undefined, { env }: Context): Layers {
  const environment = readEnvironment(schema, env);
  if (path !== undefined || existsSync(usual)) {
    return { file: objectOf(readJsonFile(path ?? usual, 'the configuration file')), environment };
  }
  const missing = schema.required.filter((key) => !environment.names.has(key)).map(variableOf);
  if (missing.length === 0) return { file: {}, environment };
  const made = usual === SOURCE_FILE ? 'make one with dfinery-elt init' : 'write one';
  throw configError(`there is no ${usual} here: ${made}, name another with --config, or set ${missing.join(', ')}.`);
}

function settingsOf({ properties }: ConfigSchema, { file, environment }: Layers): Record<string, Setting> {
  const settings = Object.entries(properties).map(([key, property]): [string, Setting] => {
    const shown = (value: unknown) => (property.airbyte_secret && value !== undefined ? MASK : value);
    const variable = environment.names.get(key);
    if (variable !== undefined) return [key, { value: shown(environment.values[key]), from: 'environment', variable }];
    const written = file[key] ?? undefined;
    if (written !== undefined) return [key, { value: shown(written), from: 'file' }];
    return [key, { value: property.default ?? null, from: 'default' }];
  });
  return Object.fromEntries(settings);
}

function formOf({ type, enum: choices, airbyte_secret }: Property): string {
  if (airbyte_secret) return 'secret; also …_FILE';
  return choices === undefined ? FORMS[type ?? 'string'] : choices.join(' | ');
}

const defaultOf = (value: unknown): string => {
  if (value === undefined || (typeof value === 'object' && JSON.stringify(value).length === 2)) return '';
  return String(value);
};

function help(schema: ConfigSchema, unused: readonly string[] = []): string {
  const rows = variablesOf(schema)
    .filter(({ key }) => !unused.includes(key))
    .map(({ name, key, property }) => [
      name,
      formOf(property),
      schema.required.includes(key) ? 'required' : defaultOf(property.default),
    ]);
  return [
    'Each configuration key is an environment variable too, and wins there over the file; without a file they are enough:',
    ...tableLines(['variable', 'value', 'default'], rows),
  ].join('\n');
}

/** The end of the help of commands that read the source configuration. */
export const sourceEnvironmentHelp = (): string => help(sourceSchema);

/** The end of the help of `forget`, whose consent is `--confirm` (S38), and whose list is of no stream. */
export const destinationEnvironmentHelp = (): string => help(destinationSchema, ['dry_run', 'streams']);
