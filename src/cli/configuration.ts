import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { credentialsError, hasCredentials } from '../base/address.ts';
import { configError, type UserError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import { readVariables, refuseUnknownVariables, type Variables } from '../config/environment.ts';
import type { ConfigWith, RequiredKey } from '../config/fields.ts';
import { configKeysOf, unknownKeyTexts } from '../config/keys.ts';
import { ERASURE_PART, LOCAL_PART } from '../config/local.ts';
import { missingKeyProblems, parsePart, requireObject } from '../config/parse.ts';
import { type Problem, problemsError } from '../config/problems.ts';
import { SOURCE_PART } from '../config/source.ts';
import { readJsonFile } from '../fs/json-file.ts';
import { isAddress } from '../fs/local-path.ts';
import { STATEFUL_TARGETS } from '../targets/targets.ts';
import type { Context } from './context.ts';

export const CONFIG_FILE = 'dfinery.json';

const FILE_KEYS = [...configKeysOf(SOURCE_PART.schema), ...configKeysOf(LOCAL_PART.schema)];
/** The keys of the object `erasure` in the file. */
const ERASURE_KEYS = configKeysOf(ERASURE_PART.schema);
/** Every key that a command reads. */
export const CONFIG_KEYS = [...FILE_KEYS, ...ERASURE_KEYS];

/** The values of all keys, with every default filled in. */
export interface CommandConfig
  extends ReturnType<typeof SOURCE_PART.makeConfig>,
    ReturnType<typeof LOCAL_PART.makeConfig>,
    ReturnType<typeof ERASURE_PART.makeConfig> {
  /** Default: target and place. */
  readonly places: NonNullable<ReturnType<typeof ERASURE_PART.makeConfig>['places']>;
  /** What messages call the file. */
  readonly fileLabel: string;
  /** False for an object of the library, of which no variable sets a key. */
  readonly readsVariables: boolean;
}

/**
 * Reads a file (default: dfinery.json here) and the environment, which wins. Takes an object as it is, without the
 * environment. Throws for values that are wrong, and for unknown keys.
 */
export function readConfiguration(
  pathOrObject: string | object | undefined,
  { env, redactor }: Context,
): CommandConfig {
  const readsVariables = typeof pathOrObject !== 'object';
  const file = readsVariables ? readConfigFile(pathOrObject) : configFileOf(pathOrObject, 'config', resolve('.'));
  const usedEnv = readsVariables ? env : {};
  refuseUnknownVariables(usedEnv, CONFIG_KEYS);
  const variables = readVariables(CONFIG_KEYS, usedEnv);

  // From here on no message shows a secret, whatever else is wrong with it.
  for (const values of [file.rawValues, file.rawErasure, variables.values])
    for (const { key, schema } of CONFIG_KEYS)
      if (schema.airbyte_secret && typeof values[key] === 'string') redactor.add(new Secret(values[key]));

  if (variables.problems.length > 0) throw problemsError('the environment', variables.problems);
  refuseUnknownKeys(file);
  const values = joinValues(file, variables);
  const source = parsePart(SOURCE_PART, values);
  const local = parsePart(LOCAL_PART, values);
  const erasure = parsePart(ERASURE_PART, values);
  if (source.config === undefined || local.config === undefined || erasure.config === undefined) {
    const problems = [source, local, erasure].flatMap((part) => part.problems);
    throw problemsError('the configuration', problems, variables.variableNameByKey);
  }
  const config = { ...source.config, ...local.config, ...erasure.config };
  const { places = defaultPlaces(config) } = config;
  return Object.freeze({ ...config, places, fileLabel: file.fileLabel, readsVariables });
}

type ConfigFile = ReturnType<typeof configFileOf>;

/** Reads a configuration file; without a path dfinery.json, if it is here. */
function readConfigFile(path: string | undefined): ConfigFile {
  if (path === undefined && !existsSync(CONFIG_FILE))
    return configFileOf({}, `${CONFIG_FILE}, which is not here (dfinery-elt init makes it)`, '.');
  const filePath = path ?? CONFIG_FILE;
  return configFileOf(readJsonFile(filePath, 'the configuration file'), filePath, dirname(filePath));
}

/** A configuration file with this content. `fileLabel`: what messages call it. Its paths are relative to `folder`. */
function configFileOf(content: unknown, fileLabel: string, folder: string) {
  const { erasure, ...rawValues } = requireObject(content);
  const rawErasure: unknown = erasure ?? {};
  if (!isObject(rawErasure)) throw configError(`erasure in ${fileLabel} is not usable, wanted an object.`);
  return { rawValues, rawErasure, fileLabel, folder };
}

function refuseUnknownKeys({ rawValues, rawErasure, fileLabel }: ConfigFile): void {
  const texts = [
    ...unknownKeyTexts(FILE_KEYS, rawValues, { configKeys: ERASURE_KEYS, where: 'in the object erasure' }),
    ...unknownKeyTexts(ERASURE_KEYS, rawErasure, { configKeys: FILE_KEYS, where: 'beside the object erasure' }).map(
      (text) => `erasure.${text}`,
    ),
  ];
  if (texts.length > 0) throw configError(`${fileLabel} has unknown keys: ${texts.join(', ')}.`);
}

/** The values of the file and of the variables, which win. A path of the file gets the file's folder. */
function joinValues(file: ConfigFile, { values: variableValues, variableNameByKey }: Variables): JsonObject {
  const values: Record<string, unknown> = { ...file.rawValues, ...file.rawErasure, ...variableValues };
  const resolvePath = (path: unknown, key: string) => {
    // Messages and logs show addresses, so that none may hold a key.
    if (hasCredentials(path)) throw credentialsError(variableNameByKey.get(key) ?? `${key} in ${file.fileLabel}`);
    return isFilledText(path) ? pathInFolder(path, variableNameByKey.has(key) ? '.' : file.folder) : path;
  };
  for (const { key, schema } of CONFIG_KEYS) if (schema.format === 'path') values[key] = resolvePath(values[key], key);
  if (Array.isArray(values.places)) {
    values.places = values.places.map((entry: unknown) =>
      isObject(entry) ? { ...entry, place: resolvePath(entry.place, 'places') } : entry,
    );
  }
  return values;
}

/** By default an erasure purges the place of the configuration, if its target keeps what it loads. */
const defaultPlaces = ({ target, place }: Pick<CommandConfig, 'target' | 'place'>) =>
  target && place && STATEFUL_TARGETS.some(({ name }) => name === target) ? [{ target, place }] : [];

/** A path in a file is relative to its folder; `-` is stdout. Throws a configuration failure for the `~` of a shell. */
export function pathInFolder(path: string, folder: string): string {
  if (path.startsWith('~/'))
    throw configError(`${path} begins with ~, which only a shell replaces: write the whole path.`);
  return path === '-' || isAddress(path) || isAbsolute(path) ? path : join(folder, path);
}

const isFilledText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The keys that a plan needs, and those that an export needs. */
export const requirePlanKeys = (config: CommandConfig) =>
  requireKeys(config, 'service_id', 'hash_key', 'suppression_key');
export const requireExportKeys = (config: CommandConfig) =>
  requireKeys(config, 'base_url', 'export_token', 'service_id', 'hash_key', 'suppression_key');
export type PlanConfig = ReturnType<typeof requirePlanKeys>;
export type ExportConfig = ReturnType<typeof requireExportKeys>;

/**
 * The same configuration, in which none of these keys is missing. A secret of hashes is missing only if another key
 * needs it, so that its type stays: `hash_key` beside `columns_hash`, `suppression_key` beside `suppression_file`.
 */
export function requireKeys<K extends RequiredKey | 'hash_key' | 'suppression_key'>(
  config: CommandConfig,
  ...keys: readonly K[]
) {
  const allProblems = [...missingKeyProblems(SOURCE_PART, config), ...missingKeyProblems(ERASURE_PART, config)];
  const problems = keys.flatMap((key) => allProblems.find((problem) => problem.key === key) ?? []);
  if (problems.length > 0) throw missingKeysError(config, problems);
  return config as ConfigWith<CommandConfig, K & RequiredKey>;
}

/** The failure that names each missing key, and where to set it. */
function missingKeysError({ fileLabel, readsVariables }: CommandConfig, problems: readonly Problem[]): UserError {
  const missingKeys = problems.flatMap((problem) => CONFIG_KEYS.find(({ key }) => key === problem.key) ?? []);
  const names = missingKeys.map(
    ({ variableName, schema }) => `${variableName}${schema.airbyte_secret ? ' (or …_FILE)' : ''}`,
  );
  const isInErasure = missingKeys.some((configKey) => ERASURE_KEYS.includes(configKey));
  const objectText = `${isInErasure ? 'the object erasure of ' : ''}${fileLabel}`;
  const variablesText = readsVariables ? `set ${names.join(', ')}, or ` : '';
  const pronoun = problems.length === 1 ? 'it' : 'them';
  const texts = problems.map(({ text }) => text).join(', ');
  return configError(`${texts}: ${variablesText}write ${pronoun} into ${objectText}.`);
}
