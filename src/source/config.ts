import type { VerbContext } from '../airbyte/connector.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';

/** The configuration of a connector's verb: secrets masked from here on, unknown keys warned about (S27). */
export function openConfig(value: unknown, context: VerbContext): SourceConfig {
  const { config, unknown } = parseSourceConfig(value, context.env);
  context.redactor.add(config.exportToken);
  context.redactor.add(config.suppressionKey);
  context.redactor.add(config.hashKey);
  if (unknown.length > 0) {
    context.logger.warn('config.unknown', `The configuration has keys that mean nothing here: ${unknown.join(', ')}.`);
  }
  return config;
}
