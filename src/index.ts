/*
 * The library: what the commands and connectors are made of. A load, as examples/library/load.mjs shows it: a
 * configuration (`parseSourceConfig`), a session with the service (`openExportSession`), a place (`openDuckDbSink`, or
 * a `Sink` of your own), a plan of days from what the place has stored (`planRun` of `priorLoadsOf(sink.state)`), and
 * `load`, which commits its days. `extractDays` gives the days alone, `Scanner` reads a CSV at hand, `startSimulator` is
 * a service for tests.
 */
export { type Clock, systemClock } from './base/clock.ts';
export { type ErrorKind, UserError } from './base/errors.ts';
export { createLogger, type LogEvent, type Logger, silentLogger } from './base/log.ts';
export { Secret } from './base/secrets.ts';
export { Scanner, type ScanResult } from './cells/columns/scanner.ts';
export { COLUMN_TYPES, type ColumnType } from './cells/types/type.ts';
export { type DestinationConfig, parseDestinationConfig } from './config/destination.ts';
export { parseSourceConfig, type SourceConfig } from './config/source.ts';
export type { DayDownload, ExportState as State, PriorLoads, Receipt, RunFacts } from './extract/day.ts';
export type { ExtractDeps, ExtractOptions } from './extract/deps.ts';
export { type DayBatch, extractDays } from './extract/extract.ts';
export type { PlanInput } from './extract/plan/plan.ts';
export { type Plan, planRun } from './extract/plan/plan.ts';
export { type ExportSession, extractDeps, openExportSession } from './extract/session.ts';
export { ExportClient } from './service/export/client.ts';
export {
  type ExportAnswer,
  type ExportRequest,
  type ExportService,
  UnreadableBody,
} from './service/export/protocol.ts';
export { ExportQuota } from './service/quota/quota.ts';
export { type Simulator, startSimulator } from './simulator/index.ts';
export type { Commit } from './table/batch.ts';
export type { RunRecord } from './table/runs.ts';
export { priorLoadsOf, type TableState } from './table/state.ts';
export type { Sink } from './targets/contract.ts';
export { openDuckDbSink } from './targets/duckdb/sink.ts';
export { type LoadCounts, load, newLoadCounts } from './targets/load.ts';
