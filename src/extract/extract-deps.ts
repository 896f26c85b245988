import { tmpdir } from 'node:os';
import type { Runtime } from '../base/runtime.ts';
import type { ScannerOptions, Suppression } from '../cells/columns/export-scanner.ts';
import type { SourceConfig } from '../config/source.ts';
import type { ExportService } from '../service/export/export-service.ts';
import { scannerOptionsOf } from './export-settings.ts';
import { ObservedService } from './observed-service.ts';

export interface ExtractDeps extends Omit<Runtime, 'env'> {
  readonly service: Readonly<ObservedService>;
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
  return {
    ...runtime,
    service: new ObservedService(service, config, runtime),
    // The configuration of a connector has no such key.
    spoolDir: config.spoolDir ?? tmpdir(),
    scannerOptions: scannerOptionsOf(config, suppression),
  };
}
