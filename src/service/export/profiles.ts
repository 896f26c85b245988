import type { ScannerOptions } from '../../cells/columns/scanner.ts';
import { UNIFIED_ID } from '../../cells/csv/header.ts';
import type { CheckedBody, CheckedOutput } from './checked-body.ts';
import { type DownloadFailure, type DownloadRequest, downloadChecked } from './download.ts';
import { NOT_FOUND } from './outcomes.ts';
import type { ExportService, ProfileRequest } from './protocol.ts';

/** Asks for all attributes. */
export const ALL_PROPERTIES: ProfileRequest = { properties: [], propertiesCondition: 'all' };
/** Asks for the ids alone, as far as a request can. */
export const IDS_ALONE: ProfileRequest = { properties: [UNIFIED_ID], propertiesCondition: 'include' };

export type ProfileService = Pick<ExportService, 'exportProfiles'>;

export interface ProfileDeps<Output extends CheckedOutput>
  extends Omit<DownloadRequest<Output>, 'label' | 'send' | 'scan' | 'finalNewline' | 'mayGrow'> {
  readonly service: ProfileService;
  readonly scan?: Omit<ScannerOptions, 'requireColumns'>;
}

/**
 * Downloads all profiles, and repeats a request that may succeed later. A failure is `failed` if it may pass. It is
 * `gone` if the service does not have this export, `invalid` if it refuses the form of the request. For `config` and
 * `unsupported` the user must act. Throws what `open` and its output throw, UserErrors of the quota, and the signal's
 * reason.
 */
export async function downloadProfiles<Output extends CheckedOutput>(
  request: ProfileRequest,
  { service, scan, ...download }: ProfileDeps<Output>,
): Promise<CheckedBody<Output> | DownloadFailure> {
  const result = await downloadChecked({
    ...download,
    label: 'profiles',
    mayGrow: true,
    send: (signal) => service.exportProfiles(request, signal),
    scan: { ...scan, requireColumns: false },
  });
  if (result.kind === 'checked') {
    if (result.scan.header.includes(UNIFIED_ID)) return result;
    const clause = `the export of profiles has no column ${UNIFIED_ID}: is base_url right?`;
    return { kind: 'config', code: 'no_such_columns', clause };
  }
  if (result.code === NOT_FOUND) return { ...result, kind: 'gone' };
  if (result.kind !== 'empty' && result.kind !== 'too_large') return result;
  return { ...result, kind: 'failed', clause: `the export of profiles failed: ${result.clause}` };
}
