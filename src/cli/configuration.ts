import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import erasureSchema from '../../schemas/erasure-config.json' with { type: 'json' };
import localSchema from '../../schemas/local-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import type { Env } from '../base/env.ts';
import { configError, type UserError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import { type ConfigSchema, readEnvironment, variableOf } from '../config/environment.ts';
import { type LocalConfig, parseLocalConfig } from '../config/local.ts';
import { objectOf, unknownKeys } from '../config/parse.ts';
import {
  parseSourceConfig,
  parseSourceKeys,
  parseSourceSettings,
  type SettingKey,
  type SourceConfig,
  type SourceSettings,
} from '../config/source.ts';
import { readJsonFile } from '../fs/json-file.ts';
import { isAddress } from '../fs/local-path.ts';
import type { OpenOptions } from '../targets/contract.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import { STATEFUL_TARGETS } from '../targets/targets.ts';
import type { Context } from './context.ts';

export const CONFIG_FILE = 'dfinery.json';
/** Every key that a command reads, which is also a variable. */
export const CONFIG_SCHEMAS: readonly ConfigSchema[] = [sourceSchema, localSchema, erasureSchema];

/** The keys of the file, and of `erasure` in it, whose service is that of the file. */
const KEYS = Object.keys({ ...sourceSchema.properties, ...localSchema.properties });
const ERASURE_KEYS = Object.keys(erasureSchema.properties).filter((key) => !['base_url', 'service_id'].includes(key));

/** What a command adds to the settings of the source. The suppression list may be in the folder of the ledger. */
type CommandConfig = LocalConfig & { readonly ledgerDir: string | undefined };

/** What the file and the environment say, read once; each command has the parts checked that it needs. */
export class CliConfiguration {
  /** The values outside of `erasure`. The environment wins. */
  readonly values: JsonObject;
  readonly erasure: JsonObject;
  /** The variable that gave a key. */
  readonly names: ReadonlyMap<string, string>;
  /** Where a key may be written, for messages. */
  readonly file: string;
  readonly #context: Context;

  /**
   * Reads a file (default: dfinery.json here) and the environment; or takes an object as it is, without the
   * environment. Throws for unknown keys.
   */
  constructor(pathOrObject: string | object | undefined, context: Context) {
    const { file, env, values } = inputOf(pathOrObject, context.env);
    const { erasure: erasureInFile = {}, ...inFile } = values;
    if (!isObject(erasureInFile)) throw configError(`erasure in ${file} is not usable, wanted an object.`);
    const [source, local, erasure] = CONFIG_SCHEMAS.map((schema) => readEnvironment(schema, env));
    for (const secret of secretsIn([inFile, erasureInFile, source.values, local.values, erasure.values]))
      context.redactor.add(secret);
    const unknown = [
      ...unknownKeys(KEYS, inFile),
      ...unknownKeys(ERASURE_KEYS, erasureInFile).map((key) => `erasure.${key}`),
    ];
    if (unknown.length > 0) throw configError(`${file} has unknown keys: ${unknown.join(', ')}.`);
    this.#context = context;
    this.values = { ...withPaths(inFile, dirname(file)), ...source.values, ...local.values };
    this.erasure = { ...placesToPurge(this.values), ...withPaths(erasureInFile, dirname(file)), ...erasure.values };
    this.names = new Map([...source.names, ...local.names, ...erasure.names]);
    const pathKey = PATHS.find((key) => hasUser(this.values[key] ?? this.erasure[key]));
    if (pathKey !== undefined) throw userError(this.names.get(pathKey) ?? `${pathKey} in ${file}`);
    this.file = file;
  }

  /** All that a sync needs. */
  source(): SourceConfig & CommandConfig {
    this.#require(sourceSchema.required);
    const { config } = parseSourceConfig(valuesOfSchema(this.values, sourceSchema), () => undefined, this.names);
    return { ...config, ...this.local(), ledgerDir: this.ledgerDir };
  }

  /** The same without the way to the service, which a plan does not need. */
  settings(): SourceSettings & CommandConfig {
    this.#require(['service_id']);
    const { config } = parseSourceSettings(valuesOfSchema(this.values, sourceSchema), this.names);
    return { ...config, ...this.local(), ledgerDir: this.ledgerDir };
  }

  /** The folder of the ledger, in which the suppression list is unless `suppression_file` names another. */
  get ledgerDir(): string | undefined {
    const { ledger_dir: folder } = this.erasure;
    return typeof folder === 'string' && folder !== '' ? folder : undefined;
  }

  /** Some settings: the others may be missing or wrong. */
  part<K extends SettingKey>(...keys: readonly K[]): Pick<SourceSettings, K> {
    return parseSourceKeys(keys, valuesOfSchema(this.values, sourceSchema), this.names).config;
  }

  /** What every work with a place is given. */
  local(): LocalConfig {
    return parseLocalConfig(valuesOfSchema(this.values, localSchema), this.names).config;
  }

  placeOptions(): PlaceOptions {
    return placeOptions(this.local(), this.#context);
  }

  #require(keys: readonly string[]): void {
    const missing = keys.filter((key) => (this.values[key] ?? '') === '');
    if (missing.length > 0) throw this.missing(missing);
  }

  /** The failure that a configuration lacks keys: names each with its variable. */
  missing(keys: readonly string[], file = this.file): UserError {
    const names = keys.map((key) => `${variableOf(key)}${key.endsWith('_token') ? ' (or …_FILE)' : ''}`);
    const [verb, them] = keys.length === 1 ? ['is', 'it'] : ['are', 'them'];
    return configError(`${keys.join(', ')} ${verb} missing: set ${names.join(', ')}, or write ${them} into ${file}.`);
  }
}

/** A file with the environment, or the object of a caller, which is all that counts. */
function inputOf(pathOrObject: string | object | undefined, env: Env): { file: string; env: Env; values: JsonObject } {
  if (typeof pathOrObject === 'object') return { file: 'config', env: () => undefined, values: objectOf(pathOrObject) };
  if (pathOrObject === undefined && !existsSync(CONFIG_FILE))
    return { file: `${CONFIG_FILE}, which is not here (dfinery-elt init makes it)`, env, values: {} };
  const file = pathOrObject ?? CONFIG_FILE;
  return { file, env, values: objectOf(readJsonFile(file, 'the configuration file')) };
}

/** The secrets among the values, of which no message may show one, whatever else is wrong with them. */
const secretsIn = (parts: readonly JsonObject[]): Secret[] =>
  CONFIG_SCHEMAS.flatMap(({ properties }) => Object.entries(properties))
    .filter(([, { airbyte_secret }]) => airbyte_secret)
    .flatMap(([key]) => parts.map((values) => values[key]))
    .flatMap((value) => (typeof value === 'string' ? [new Secret(value)] : []));

/** An address of the web may have an @ in its path. */
const WITH_USER = /^(-.*=)?(https?:\/\/[^/]*|(?!https?:)[a-z][a-z0-9+.-]*:\/\/.*)@/i;

/** True for an address with a user name or a key in it, which messages and notifications would repeat. */
export const hasUser = (word: unknown): boolean => typeof word === 'string' && WITH_USER.test(word);

export const userError = (what: string): UserError =>
  configError(`${what} has a user name or a key in it: give it without, and the key of a bucket in AWS_ACCESS_KEY_ID.`);

const PATHS = ['place', 'suppression_file', 'spool_dir', 'ledger_dir'];

/** Paths in a file are relative to its folder; `-` is stdout. */
function withPaths(values: JsonObject, folder: string): JsonObject {
  const inFolder = (path: unknown) =>
    typeof path === 'string' && path !== '' && path !== '-' && !isAddress(path) && !isAbsolute(path)
      ? join(folder, path)
      : path;
  const paths = Object.fromEntries(PATHS.filter((key) => key in values).map((key) => [key, inFolder(values[key])]));
  if (!Array.isArray(values.places)) return { ...values, ...paths };
  const places = values.places.map((named) => (isObject(named) ? { ...named, place: inFolder(named.place) } : named));
  return { ...values, ...paths, places };
}

/** The place of the configuration, which an erasure purges if its target keeps what it loads. */
const placesToPurge = ({ target, place }: JsonObject) =>
  place !== undefined && STATEFUL_TARGETS.some(({ name }) => name === target) ? { places: [{ target, place }] } : {};

const valuesOfSchema = (values: JsonObject, { properties }: ConfigSchema): JsonObject =>
  Object.fromEntries(Object.entries(values).filter(([key]) => Object.hasOwn(properties, key)));

export function placeOptions(
  { lockWaitMs, memoryLimit, spoolDir }: LocalConfig,
  { env, clock, logger, signal }: Context,
): PlaceOptions & { readonly signal: AbortSignal } {
  return { lockWaitMs, memoryLimit, spoolDir, env, clock, logger, signal };
}

/** How a run opens its place. */
export function openOptions(
  config: Pick<SourceSettings, 'timezone' | 'columnTypes' | 'schemaMode' | 'userProfiles'> & LocalConfig,
  context: Context,
): OpenOptions {
  const { retentionMs, timezone, columnTypes, schemaMode, userProfiles } = config;
  const stdout = context.terminal.stdout ?? process.stdout;
  return { ...placeOptions(config, context), retentionMs, timezone, columnTypes, schemaMode, userProfiles, stdout };
}
