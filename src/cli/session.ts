import { systemRandom } from '../base/random.ts';
import type { SourceConfig } from '../config/source.ts';
import { extractOptionsOf } from '../extract/options.ts';
import { deliveryOf } from '../extract/plan/delivery.ts';
import { type Plan, planRun } from '../extract/plan/plan.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import { newTally, type Tally } from '../extract/summary.ts';
import { createExportService } from '../service/export/client.ts';
import type { ExportService } from '../service/export/service.ts';
import type { ExportGate } from '../service/quota/gate.ts';
import { createExportQuota } from '../service/quota/quota.ts';
import type { Memory } from '../sinks/sink.ts';
import type { Context } from './context.ts';

/** The days that the command line asks for, over what the configuration says. */
export interface Span {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly fullRefresh: boolean;
}

/** The service and its quota for one run; closed together. */
export interface ServiceSession {
  readonly service: ExportService;
  readonly quota: ExportGate;
  close(): Promise<void>;
}

/** The gate to the Export group's limits, shared by the processes of this machine through the spool folder. */
export function openQuota(config: SourceConfig, { clock, logger }: Context, maxWaitMs?: number): ExportGate {
  return createExportQuota({ ...config, ledgerDir: config.spoolDir, clock, random: systemRandom, logger, maxWaitMs });
}

export function openServiceSession(config: SourceConfig, context: Context, maxWaitMs?: number): ServiceSession {
  const { clock, logger, env } = context;
  const quota = openQuota(config, context, maxWaitMs);
  const service = createExportService({ ...config, clock, logger, quota, env });
  return { service, quota, close: () => service.close() };
}

export function planLocal(config: SourceConfig, memory: Memory, span: Span, now: number): Plan {
  return planRun({ settings: config, delivery: deliveryOf(config.delivery, false), ...span, memory, now });
}

export function extractDeps(
  config: SourceConfig,
  service: ExportService,
  context: Context,
): ExtractDeps & { readonly tally: Tally } {
  return {
    service,
    clock: context.clock,
    random: systemRandom,
    logger: context.logger,
    signal: context.signal,
    spoolDir: config.spoolDir,
    options: extractOptionsOf(config),
    tally: newTally(),
  };
}
