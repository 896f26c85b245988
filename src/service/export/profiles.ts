import type { ScannerOptions } from '../../cells/columns/export-scanner.ts';
import { UNIFIED_ID } from '../../cells/header.ts';
import type { BodyOutput } from './checked-body.ts';
import { type DownloadOptions, type DownloadResult, downloadChecked } from './download.ts';
import type { ProfileRequest } from './export-service.ts';
import { NOT_FOUND_CODE } from './outcomes.ts';

export const ALL_PROPERTIES: ProfileRequest = { properties: [], propertiesCondition: 'all' };
/** Asks for the ids alone, as far as a request can. */
export const IDS_ALONE: ProfileRequest = { properties: [UNIFIED_ID], propertiesCondition: 'include' };

export interface ProfileOptions<Output extends BodyOutput>
  extends Omit<DownloadOptions<Output>, 'label' | 'rowsMayChange' | 'request' | 'scannerOptions'> {
  readonly scannerOptions?: Omit<ScannerOptions, 'needsEventColumns'>;
}

/**
 * Downloads all profiles, and repeats a request that may succeed later. A download is `gone` if the service does not
 * have this export, and `invalid` if it refuses the form of the request; none is `empty` or `too_large`. Throws what
 * `openOutput` and its output throw, UserErrors of the quota, and the signal's reason.
 */
export async function downloadProfiles<Output extends BodyOutput>(
  request: ProfileRequest,
  { scannerOptions, ...options }: ProfileOptions<Output>,
): Promise<DownloadResult<Output>> {
  const download = await downloadChecked({
    ...options,
    label: 'profiles',
    rowsMayChange: true,
    request,
    scannerOptions: { ...scannerOptions, needsEventColumns: false },
  });
  if (download.kind === 'checked') {
    if (download.scan.columns.some(({ headerName }) => headerName === UNIFIED_ID)) return download;
    const clause = `the export of profiles has no column ${UNIFIED_ID}: is base_url right?`;
    return { kind: 'config', code: 'no_such_columns', clause, exportCount: download.exportCount };
  }
  if (download.code === NOT_FOUND_CODE) return { ...download, kind: 'gone' };
  if (download.kind !== 'empty' && download.kind !== 'too_large') return download;
  return { ...download, kind: 'later', clause: `the export of profiles failed: ${download.clause}` };
}
