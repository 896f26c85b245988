import type { Runtime } from '../base/runtime.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import { defaultSpoolDir } from '../config/local.ts';
import type { SourceConfig } from '../config/source.ts';
import type { ExportService } from '../service/export/protocol.ts';
import { editsOf } from './export-request.ts';
import { ObservedService } from './observed-service.ts';

export interface ExtractDeps extends Omit<Runtime, 'env'> {
  readonly service: Readonly<ObservedService>;
  readonly maxConcurrentExports: number;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  /** How every export is scanned. */
  readonly scannerOptions: ExportScannerOptions;
}

/** The zone of its datetimes, the columns that are dropped or hashed, and the people who are left out. */
interface ExportScannerOptions extends Pick<SourceConfig, 'timezone'> {
  readonly edits: ColumnEdits;
  readonly suppression?: Suppression | undefined;
}

export function extractDeps(
  config: SourceConfig & { readonly spoolDir?: string },
  service: ExportService,
  runtime: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  const { spoolDir = defaultSpoolDir(), timezone, maxConcurrentExports } = config;
  return {
    ...runtime,
    service: new ObservedService(service, config, runtime),
    maxConcurrentExports,
    spoolDir,
    scannerOptions: { timezone, edits: editsOf(config), suppression },
  };
}
