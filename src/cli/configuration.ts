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
import { type ErasureConfig, parseErasureConfig } from '../config/erasure.ts';
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
import type { ServiceAddress } from '../erasure/ledger/chain.ts';
import { readJsonFile } from '../fs/json-file.ts';
import { isAddress } from '../fs/local-path.ts';
import type { OpenOptions } from '../targets/contract.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import { STATEFUL_TARGETS } from '../targets/targets.ts';
import type { Context } from './context.ts';

export const CONFIG_FILE = 'dfinery.json';
/** Every key that a command reads, which is also a variable. */
export const CONFIG_SCHEMAS: Readonly<Record<'source' | 'local' | 'erasure', ConfigSchema>> = {
  source: sourceSchema,
  local: localSchema,
  erasure: erasureSchema,
};

/** The keys of the file. Those of `erasure` in it lack the service, which is that of the file. */
const KEYS = Object.keys({ ...sourceSchema.properties, ...localSchema.properties });
const ERASURE_KEYS = Object.keys(erasureSchema.properties).filter((key) => !['base_url', 'service_id'].includes(key));

/** What a command adds to the settings of the source. The folder of the ledger may hold the suppression list. */
type CommandConfig = LocalConfig & { readonly ledgerDir: string | undefined };

/** The settings of a command that reads nothing from the service. */
export type CommandSettings = SourceSettings & CommandConfig;

/** What the file and the environment say, read once; each command has the parts checked that it needs. */
export class CliConfiguration {
  /** The values outside of `erasure`. The environment wins. */
  readonly #values: JsonObject;
  readonly #erasure: JsonObject;
  /** The variable that gave a key. */
  readonly #variableByKey: ReadonlyMap<string, string>;
  /** Where a key may be written, for messages. */
  readonly shownFile: string;
  readonly #context: Context;

  /**
   * Reads a file (default: dfinery.json here) and the environment; or takes an object as it is, without the
   * environment. Throws for unknown keys.
   */
  constructor(pathOrObject: string | object | undefined, context: Context) {
    const { folder, shownFile, env, values } = inputOf(pathOrObject, context.env);
    const { erasure: erasureInFile = {}, ...inFile } = values;
    if (!isObject(erasureInFile)) throw configError(`erasure in ${shownFile} is not usable, wanted an object.`);
    const source = readEnvironment(CONFIG_SCHEMAS.source, env);
    const local = readEnvironment(CONFIG_SCHEMAS.local, env);
    const erasure = readEnvironment(CONFIG_SCHEMAS.erasure, env);
    for (const secret of secretsIn([inFile, erasureInFile, source.values, local.values, erasure.values]))
      context.redactor.add(secret);
    const unknown = [
      ...unknownKeys(KEYS, inFile),
      ...unknownKeys(ERASURE_KEYS, erasureInFile).map((key) => `erasure.${key}`),
    ];
    if (unknown.length > 0) throw configError(`${shownFile} has unknown keys: ${unknown.join(', ')}.`);
    this.#context = context;
    this.#values = { ...withPaths(inFile, folder), ...source.values, ...local.values };
    this.#erasure = { ...placesToPurge(this.#values), ...withPaths(erasureInFile, folder), ...erasure.values };
    this.#variableByKey = new Map([...source.names, ...local.names, ...erasure.names]);
    this.shownFile = shownFile;
    this.#refuseCredentials();
  }

  /** Messages and logs show addresses, so that none may hold a key. */
  #refuseCredentials(): void {
    const { places } = this.#erasure;
    const addresses = {
      ...Object.fromEntries(PATH_KEYS.map((key) => [key, [this.#values[key] ?? this.#erasure[key]]])),
      places: Array.isArray(places) ? places.map((named) => (isObject(named) ? named.place : undefined)) : [],
    };
    const key = Object.entries(addresses).find(([, values]) => values.some(hasCredentials))?.[0];
    if (key !== undefined) throw addressWithCredentials(this.#variableByKey.get(key) ?? `${key} in ${this.shownFile}`);
  }

  /** All that a sync needs. */
  source(): SourceConfig & CommandConfig {
    this.#require(sourceSchema.required);
    const values = valuesOfSchema(this.#values, sourceSchema);
    return this.#withLocal(parseSourceConfig(values, () => undefined, this.#variableByKey).config);
  }

  /** The same without the way to the service, which a plan does not need. */
  settings(): CommandSettings {
    this.#require(['service_id']);
    return this.#withLocal(parseSourceSettings(valuesOfSchema(this.#values, sourceSchema), this.#variableByKey).config);
  }

  #withLocal<T>(config: T): T & CommandConfig {
    return { ...config, ...this.local(), ledgerDir: this.ledgerDir };
  }

  /** The object `erasure`, with the service of the same file; the environment wins. */
  erasure(): ErasureConfig {
    const { base_url = this.#erasure.base_url, service_id = this.#erasure.service_id } = this.#values;
    return parseErasureConfig({ ...this.#erasure, base_url, service_id }, this.#variableByKey).config;
  }

  /** The service whose profiles are deleted. Throws UserError if the configuration lacks it. */
  service(): ServiceAddress {
    const { service } = this.erasure();
    if (service !== undefined) return service;
    const keys = ['base_url', 'service_id'];
    throw this.#missingKeys(keys.filter((key) => (this.#values[key] ?? this.#erasure[key] ?? '') === ''));
  }

  /** The token of the deletions. Throws UserError if the configuration lacks it. */
  importToken(): Secret {
    const { importToken } = this.erasure();
    if (importToken !== undefined) return importToken;
    throw this.#missingKeys(['import_token'], `the object erasure of ${this.shownFile}`);
  }

  get hasExportToken(): boolean {
    return (this.#values.export_token ?? '') !== '';
  }

  /** The folder of the ledger, in which the suppression list is unless `suppression_file` names another. */
  get ledgerDir(): string | undefined {
    const { ledger_dir: folder } = this.#erasure;
    return typeof folder === 'string' && folder !== '' ? folder : undefined;
  }

  /** The settings of these keys: the others may be missing or wrong. */
  settingsNamed<K extends SettingKey>(...keys: readonly K[]): Pick<SourceSettings, K> {
    return parseSourceKeys(keys, valuesOfSchema(this.#values, sourceSchema), this.#variableByKey).config;
  }

  /** What every work with a place is given. */
  local(): LocalConfig {
    return parseLocalConfig(valuesOfSchema(this.#values, localSchema), this.#variableByKey).config;
  }

  placeOptions(): PlaceOptions {
    return placeOptions(this.local(), this.#context);
  }

  #require(keys: readonly string[]): void {
    const missing = keys.filter((key) => (this.#values[key] ?? '') === '');
    if (missing.length > 0) throw this.#missingKeys(missing);
  }

  /** The failure that a configuration lacks keys: names each with its variable. */
  #missingKeys(keys: readonly string[], file = this.shownFile): UserError {
    const names = keys.map((key) => `${variableOf(key)}${key.endsWith('_token') ? ' (or …_FILE)' : ''}`);
    const [verb, them] = keys.length === 1 ? ['is', 'it'] : ['are', 'them'];
    return configError(`${keys.join(', ')} ${verb} missing: set ${names.join(', ')}, or write ${them} into ${file}.`);
  }
}

/** A file with the environment, or the object of a caller, which is all that counts. Paths are relative to `folder`. */
function inputOf(pathOrObject: string | object | undefined, env: Env) {
  if (typeof pathOrObject === 'object')
    return { folder: '.', shownFile: 'config', env: () => undefined, values: objectOf(pathOrObject) };
  if (pathOrObject === undefined && !existsSync(CONFIG_FILE)) {
    const shownFile = `${CONFIG_FILE}, which is not here (dfinery-elt init makes it)`;
    return { folder: '.', shownFile, env, values: {} };
  }
  const file = pathOrObject ?? CONFIG_FILE;
  return {
    folder: dirname(file),
    shownFile: file,
    env,
    values: objectOf(readJsonFile(file, 'the configuration file')),
  };
}

/** The secrets among the values, of which no message may show one, whatever else is wrong with them. */
const secretsIn = (parts: readonly JsonObject[]): Secret[] =>
  Object.values(CONFIG_SCHEMAS)
    .flatMap(({ properties }) => Object.entries(properties))
    .filter(([, { airbyte_secret }]) => airbyte_secret)
    .flatMap(([key]) => parts.map((values) => values[key]))
    .flatMap((value) => (typeof value === 'string' ? [new Secret(value)] : []));

/** An address of the web may have an @ in its path. */
const WITH_CREDENTIALS = /^(-.*=)?(https?:\/\/[^/]*|(?!https?:)[a-z][a-z0-9+.-]*:\/\/.*)@/i;

/** True for an address with a user name or a key in it, which messages and notifications would repeat. */
export const hasCredentials = (word: unknown): boolean => typeof word === 'string' && WITH_CREDENTIALS.test(word);

export const addressWithCredentials = (what: string): UserError =>
  configError(`${what} has a user name or a key in it: give it without, and the key of a bucket in AWS_ACCESS_KEY_ID.`);

const PATH_KEYS = ['place', 'suppression_file', 'spool_dir', 'ledger_dir'];

/** Paths in a file are relative to its folder; `-` is stdout. */
function withPaths(values: JsonObject, folder: string): JsonObject {
  const inFolder = (path: unknown) =>
    typeof path === 'string' && path !== '' && path !== '-' && !isAddress(path) && !isAbsolute(path)
      ? join(folder, path)
      : path;
  const paths = Object.fromEntries(PATH_KEYS.filter((key) => key in values).map((key) => [key, inFolder(values[key])]));
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
