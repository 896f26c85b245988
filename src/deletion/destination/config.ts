import type { VerbContext } from '../../airbyte/connector.ts';
import { type DestinationConfig, parseDestinationConfig } from '../../config/destination.ts';
import type { Parsed } from '../../config/parse.ts';

/** Parses the configuration and registers its secrets with the redactor; also returns the unknown keys. */
export function parsed(value: unknown, { env, redactor }: VerbContext): Parsed<DestinationConfig> {
  const found = parseDestinationConfig(value, env);
  redactor.add(found.config.importToken);
  redactor.add(found.config.ledgerKey);
  return found;
}

/** Connectors warn about unknown keys, they do not refuse them. */
export function warnOfUnknown(unknown: readonly string[], { logger }: VerbContext): void {
  if (unknown.length === 0) return;
  logger.warn('config.unknown_keys', `The configuration has keys that mean nothing here: ${unknown.join(', ')}.`);
}

export function configured(value: unknown, context: VerbContext): DestinationConfig {
  const { config, unknown } = parsed(value, context);
  warnOfUnknown(unknown, context);
  return config;
}
