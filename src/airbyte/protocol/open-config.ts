import type { Secret } from '../../base/secrets.ts';
import type { VerbContext } from './connector.ts';

interface ParsedConfig<C> {
  readonly config: C;
  readonly secrets: readonly Secret[];
  readonly unknown: readonly string[];
}

/** Opens the configuration of a verb: masks its secrets from here on, and warns of unknown keys. */
export function openConfig<C>({ config, secrets, unknown }: ParsedConfig<C>, { redactor, logger }: VerbContext): C {
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) {
    logger.warn('config.unknown_keys', `The configuration has keys that mean nothing here: ${unknown.join(', ')}.`);
  }
  return config;
}
