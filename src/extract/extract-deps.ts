import { tmpdir } from 'node:os';
import type { Runtime } from '../base/runtime.ts';
import type { ScannerOptions, Suppression } from '../cells/columns/scanner.ts';
import type { SourceConfig } from '../config/source.ts';
import type { ExportService } from '../service/export/export-service.ts';
import { scannerOptionsOf } from './export-settings.ts';
import { ObservedService } from './observed-service.ts';

export interface ExtractDeps extends Omit<Runtime, 'env'> {
  readonly service: Readonly<ObservedService>;
  readonly maxConcurrentExports: number;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  readonly scannerOptions: ScannerOptions;
}

export function extractDeps(
  config: SourceConfig & { readonly spoolDir?: string },
  service: ExportService,
  runtime: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  // A connector has no key for it.
  const { spoolDir = tmpdir(), maxConcurrentExports } = config;
  return {
    ...runtime,
    service: new ObservedService(service, config, runtime),
    maxConcurrentExports,
    spoolDir,
    scannerOptions: scannerOptionsOf(config, suppression),
  };
}
