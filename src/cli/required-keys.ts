import { configError, type UserError } from '../base/errors.ts';
import type { ConfigWith, RequiredKey } from '../config/fields.ts';
import type { Problem } from '../config/problems.ts';
import { CONFIG_KEYS, type CommandConfig, ERASURE_KEYS } from './configuration.ts';

/** The keys that a plan needs, and those that an export needs. */
export const requirePlanKeys = (config: CommandConfig) =>
  requireKeys(config, 'service_id', 'hash_key', 'suppression_key');
export const requireExportKeys = (config: CommandConfig) =>
  requireKeys(config, 'base_url', 'export_token', 'service_id', 'hash_key', 'suppression_key');
export type PlanConfig = ReturnType<typeof requirePlanKeys>;
export type ExportConfig = ReturnType<typeof requireExportKeys>;

/**
 * The same configuration, in which none of these keys is missing. A secret of hashes is missing only if another key
 * needs it: `hash_key` beside `columns_hash`, `suppression_key` beside `suppression_file`.
 */
export function requireKeys<K extends RequiredKey | 'hash_key' | 'suppression_key'>(
  config: CommandConfig,
  ...keys: readonly K[]
) {
  const problems = keys.flatMap((key) => config.missingProblems.find((problem) => problem.key === key) ?? []);
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
