import { existsSync } from 'node:fs';
import destinationSchema from '../../schemas/destination-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import { configFailure } from '../base/errors.ts';
import { type DestinationConfig, parseDestinationConfig } from '../config/destination.ts';
import {
  type ConfigSchema,
  type EnvironmentValues,
  type Property,
  readEnvironment,
  variableOf,
  variablesOf,
} from '../config/environment.ts';
import { objectOf, type Parsed } from '../config/parse.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';
import { type Context, readJsonFile } from './context.ts';
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

/** The source configuration from the environment over `--config` (default: dfinery.json here); unknown keys are refused. */
export function loadSourceConfig(path: string | undefined, context: Context): SourceConfig {
  return parseSource(readLayers(sourceSchema, path, SOURCE_FILE, context), context);
}

/** The same, and for every key where its value came from. */
export function explainSourceConfig(path: string | undefined, context: Context) {
  const layers = readLayers(sourceSchema, path, SOURCE_FILE, context);
  return { config: parseSource(layers, context), settings: settingsOf(sourceSchema, layers) };
}

/** The destination's configuration, in the same way. */
export function loadDestinationConfig(path: string | undefined, context: Context): DestinationConfig {
  const layers = readLayers(destinationSchema, path, DESTINATION_FILE, context);
  const config = known(parseDestinationConfig(merged(layers), () => undefined, layers.environment.names));
  context.redactor.add(config.importToken);
  context.redactor.add(config.ledgerKey);
  return config;
}

/** The same for what only reads a ledger, which needs no token; undefined where no service is configured. */
export function findDestinationConfig(path: string | undefined, context: Context): DestinationConfig | undefined {
  const environment = readEnvironment(destinationSchema, context.env);
  if (path === undefined && !existsSync(DESTINATION_FILE) && !('service_id' in environment.values)) return undefined;
  const { file } = readLayers({ ...destinationSchema, required: [] }, path, DESTINATION_FILE, context);
  const config = known(
    parseDestinationConfig(
      { import_token: 'none', ...merged({ file, environment }) },
      () => undefined,
      environment.names,
    ),
  );
  context.redactor.add(config.ledgerKey);
  return config;
}

/** Keys that a command needs only if it calls the service. */
const NO_SERVICE = { base_url: 'https://host', service_id: 'none', export_token: 'none' };

/**
 * The source configuration as far as it concerns a local file, which needs no service. Undefined if there is
 * none: no `--config`, no dfinery.json here, no lists of columns in the environment.
 */
export function findSourceConfig(path: string | undefined, context: Context): SourceConfig | undefined {
  const { values } = readEnvironment(sourceSchema, context.env);
  const hasLists = 'columns_drop' in values || 'columns_hash' in values;
  if (path === undefined && !existsSync(SOURCE_FILE) && !hasLists) return undefined;
  const { file, environment } = readLayers({ ...sourceSchema, required: [] }, path, SOURCE_FILE, context);
  return parseSource({ file: { ...NO_SERVICE, ...file }, environment }, context);
}

function parseSource(layers: Layers, { redactor }: Context): SourceConfig {
  const parsed = parseSourceConfig(merged(layers), () => undefined, layers.environment.names);
  redactor.add(parsed.config.exportToken);
  redactor.add(parsed.config.suppressionKey);
  redactor.add(parsed.config.hashKey);
  return known(parsed);
}

function known<C>({ config, unknown }: Parsed<C>): C {
  if (unknown.length > 0) throw configFailure(`the configuration has unknown keys: ${unknown.join(', ')}.`);
  return config;
}

/** The environment wins over the file. */
const merged = ({ file, environment }: Layers) => ({ ...file, ...environment.values });

function readLayers(schema: ConfigSchema, path: string | undefined, usual: string, context: Context): Layers {
  const environment = readEnvironment(schema, context.env);
  if (path === undefined && !existsSync(usual)) {
    refuseMissing(schema, usual, environment);
    return { file: {}, environment };
  }
  return { file: objectOf(readJsonFile(path ?? usual, 'the configuration file')), environment };
}

function refuseMissing({ required }: ConfigSchema, usual: string, { names }: EnvironmentValues): void {
  const missing = required.filter((key) => !names.has(key)).map(variableOf);
  if (missing.length === 0) return;
  const made = usual === SOURCE_FILE ? 'make one with dfinery-elt init' : 'write one';
  throw configFailure(`there is no ${usual} here: ${made}, name another with --config, or set ${missing.join(', ')}.`);
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

const SHORT: Readonly<Record<string, string>> = {
  boolean: 'true | false',
  integer: 'whole number',
  number: 'number',
  array: 'a,b or JSON',
  object: 'JSON object',
  string: 'text',
};

function formOf({ type, enum: choices, airbyte_secret }: Property): string {
  if (airbyte_secret) return 'secret; also …_FILE';
  return choices === undefined ? (SHORT[type ?? 'string'] ?? 'text') : choices.join(' | ');
}

const defaultOf = (value: unknown): string => {
  if (value === undefined || (typeof value === 'object' && JSON.stringify(value).length === 2)) return '';
  return String(value);
};

function help(schema: ConfigSchema): string {
  const rows = variablesOf(schema).map(({ name, key, property }) => [
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

/** The end of the help of `forget`. */
export const destinationEnvironmentHelp = (): string => help(destinationSchema);
