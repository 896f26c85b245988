import type { VerbContext } from '../airbyte/connector.ts';
import { parseSourceConfig, type SourceConfig } from '../config/source.ts';
import { extractOptionsOf } from '../extract/options.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import { createExportService } from '../service/export/client.ts';
import type { ExportService } from '../service/export/service.ts';
import type { ExportGate } from '../service/quota/gate.ts';
import { createExportQuota } from '../service/quota/quota.ts';

/** The configuration of a connector's verb: secrets masked from here on, unknown keys warned about (S27). */
export function openConfig(value: unknown, context: VerbContext): SourceConfig {
  const { config, unknown } = parseSourceConfig(value, context.env);
  context.redactor.add(config.exportToken);
  context.redactor.add(config.suppressionKey);
  if (unknown.length > 0) {
    context.logger.warn('config.unknown', `The configuration has keys that mean nothing here: ${unknown.join(', ')}.`);
  }
  return config;
}

/** What an extraction needs of a connector's world. */
export function depsOf(config: SourceConfig, context: VerbContext, service: ExportService): ExtractDeps {
  const { clock, random, logger, signal } = context;
  return { service, clock, random, logger, signal, spoolDir: config.spoolDir, options: extractOptionsOf(config) };
}

/** The gate that all processes of this machine go through. */
export function openQuota(config: SourceConfig, { clock, random, logger }: VerbContext): ExportGate {
  return createExportQuota({ ...config, clock, random, logger, ledgerDir: config.spoolDir });
}

/** The service under its quota; `waiting` is told of every wait for it. Close it in the end. */
export function openService(
  config: SourceConfig,
  context: VerbContext,
  waiting: (until: number | undefined) => void,
): ExportService & { close(): Promise<void> } {
  const { clock, logger, env } = context;
  const quota = openQuota(config, context);
  quota.onWait(waiting);
  return createExportService({ ...config, clock, logger, env, quota });
}
