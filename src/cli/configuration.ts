import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import erasureSchema from '../../schemas/erasure-config.json' with { type: 'json' };
import localSchema from '../../schemas/local-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import { type ColumnType, isColumnType } from '../cells/types/type.ts';
import { type ConfigSchema, readEnvironment, variableOf } from '../config/environment.ts';
import { type LocalConfig, parseLocalConfig } from '../config/local.ts';
import { objectOf, unknownKeys } from '../config/parse.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';
import { readJsonFile } from '../fs/json-file.ts';
import type { PlaceOptions } from '../targets/contract.ts';
import type { Context } from './context.ts';

export const CONFIG_FILE = 'dfinery.json';
/** Every key that a command reads, which is also a variable. */
export const CONFIG_SCHEMAS: readonly ConfigSchema[] = [sourceSchema, localSchema, erasureSchema];

type Values = Readonly<Record<string, unknown>>;

/** What the file and the environment say, not yet checked. The environment wins. */
interface Given {
  /** The values outside of `erasure`. */
  readonly values: Values;
  readonly erasure: Values;
  /** The variable that gave a key. */
  readonly names: ReadonlyMap<string, string>;
  /** Where a key may be written, for messages. */
  readonly place: string;
}

/** Reads the file and the environment. Throws for unknown keys. */
export function readConfiguration(path: string | undefined, { env, redactor }: Context): Given {
  const isFile = path !== undefined || existsSync(CONFIG_FILE);
  const file = path ?? CONFIG_FILE;
  const { erasure: inner = {}, ...outer } = isFile ? objectOf(readJsonFile(file, 'the configuration file')) : {};
  if (!isObject(inner)) throw configError(`erasure in ${file} is not usable, wanted an object.`);
  const [source, local, erasure] = CONFIG_SCHEMAS.map((schema) => readEnvironment(schema, env));
  for (const schema of CONFIG_SCHEMAS) for (const secret of secretsIn(schema, outer, inner)) redactor.add(secret);
  const known = Object.keys({ ...sourceSchema.properties, ...localSchema.properties });
  const unknown = [
    ...unknownKeys(known, outer),
    ...unknownKeys(
      Object.keys(erasureSchema.properties).filter((key) => !SERVICE_KEYS.includes(key)),
      inner,
    ).map((key) => `erasure.${key}`),
  ];
  if (unknown.length > 0) throw configError(`${file} has unknown keys: ${unknown.join(', ')}.`);
  const folder = dirname(resolve(file));
  return {
    values: { ...withPaths(outer, folder), ...source.values, ...local.values },
    erasure: { ...withPaths(inner, folder), ...erasure.values },
    names: new Map([...source.names, ...local.names, ...erasure.names]),
    place: isFile ? file : `${CONFIG_FILE}, which is not here (dfinery-elt init makes it)`,
  };
}

/** The secrets of a file, of which no message may show one, whatever else is wrong with the file. */
const secretsIn = ({ properties }: ConfigSchema, ...given: readonly Values[]): Secret[] =>
  Object.entries(properties)
    .filter(([, { airbyte_secret }]) => airbyte_secret)
    .flatMap(([key]) => given.map((values) => values[key]))
    .flatMap((value) => (typeof value === 'string' ? [new Secret(value)] : []));

/** The service of `erasure` is that of the file. */
const SERVICE_KEYS = ['base_url', 'service_id'];
const PATHS = ['suppression_file', 'spool_dir', 'ledger_dir'];

/** Paths in a file are relative to its folder. */
function withPaths(given: Values, folder: string): Values {
  const absolute = (path: unknown) =>
    typeof path === 'string' && path !== '' && !path.includes('://') ? resolve(folder, path) : path;
  const paths = Object.fromEntries(PATHS.filter((key) => key in given).map((key) => [key, absolute(given[key])]));
  const { places } = given;
  if (!Array.isArray(places)) return { ...given, ...paths };
  return {
    ...given,
    ...paths,
    places: places.map((one) => (isObject(one) && 'place' in one ? { ...one, place: absolute(one.place) } : one)),
  };
}

/** Throws a configuration failure that names each missing key with its variable. */
export function requireKeys(keys: readonly string[], given: Values, place: string): void {
  const missing = keys.filter((key) => (given[key] ?? '') === '');
  if (missing.length === 0) return;
  const names = missing.map((key) => `${variableOf(key)}${key.endsWith('_token') ? ' (or …_FILE)' : ''}`);
  const [verb, them] = missing.length === 1 ? ['is', 'it'] : ['are', 'them'];
  throw configError(`${missing.join(', ')} ${verb} missing: set ${names.join(', ')}, or write ${them} into ${place}.`);
}

const pick = (given: Values, { properties }: ConfigSchema): Values =>
  Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(properties, key)));

export type LocalSourceConfig = SourceConfig & LocalConfig;

function sourceOf({ values, names }: Given, { redactor }: Context): LocalSourceConfig {
  const { config, secrets } = parseSourceConfig(pick(values, sourceSchema), () => undefined, names);
  for (const secret of secrets) redactor.add(secret);
  return { ...config, ...parseLocalConfig(pick(values, localSchema), names).config };
}

/** The source configuration, from the environment over `path` (default: dfinery.json here). */
export function loadSourceConfig(path: string | undefined, context: Context): LocalSourceConfig {
  const given = readConfiguration(path, context);
  requireKeys(sourceSchema.required, given.values, given.place);
  return sourceOf(given, context);
}

/** The values of required keys for a command that calls no service. */
const OFFLINE = { base_url: 'https://host', service_id: '-', export_token: '-' };

/** The same for a command that calls no service: nothing is required. */
export function loadOfflineConfig(path: string | undefined, context: Context): LocalSourceConfig {
  const given = readConfiguration(path, context);
  return sourceOf({ ...given, values: { ...OFFLINE, ...given.values } }, context);
}

/** What every work with a place is given: from the configuration, and from the process. */
export const placeOptions = ({ config }: { readonly config: string | undefined }, context: Context): PlaceOptions =>
  targetSettings(loadOfflineConfig(config, context), context);

/** What a target is given of a configuration, and of the process. */
export function targetSettings(config: LocalSourceConfig, { env, clock, logger, signal }: Context) {
  const { lockWaitMs, memoryLimit, spoolDir, retentionMs, timezone, columnTypes, schemaMode } = config;
  const place = { lockWaitMs, memoryLimit, spoolDir, retentionMs };
  return { ...place, timezone, columnTypes, schemaMode, env, clock, logger, signal };
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
