import { sentenceOf } from '../../base/visible-text.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { ScannerOptions } from '../../cells/columns/scanner.ts';
import type { CheckedBody, CheckedOutput } from './checked-body.ts';
import { type DownloadFailure, type DownloadRequest, downloadChecked } from './download.ts';
import { NOT_FOUND } from './outcomes.ts';
import type { ExportService, ProfileRequest } from './protocol.ts';

/** Asks for all attributes. */
export const ALL_PROPERTIES: ProfileRequest = { properties: [], propertiesCondition: 'all' };
/** Asks for the ids alone, as far as a request can. */
export const IDS_ALONE: ProfileRequest = { properties: [UNIFIED_ID], propertiesCondition: 'include' };

export type ProfileService = Pick<ExportService, 'exportProfiles'>;

/**
 * Why there is no snapshot. `busy`: the limit, a failure or a body that was cut, after all attempts. `refused`: the
 * user must act, on the token for instance. `unavailable`: the service does not have this export. `invalid`: it does not
 * accept the request in this form.
 */
export interface NoSnapshot {
  readonly kind: 'busy' | 'refused' | 'unavailable' | 'invalid';
  /** A sentence. */
  readonly message: string;
}

export interface ProfileDeps<Output extends CheckedOutput>
  extends Omit<DownloadRequest<Output>, 'label' | 'send' | 'scan' | 'finalNewline' | 'mayGrow'> {
  readonly service: ProfileService;
  readonly scan?: Omit<ScannerOptions, 'requireColumns'>;
}

/**
 * Downloads all profiles, and repeats a request that may succeed later. Throws what `open` and its output throw,
 * UserErrors of the quota, and the signal's reason.
 */
export async function downloadProfiles<Output extends CheckedOutput>(
  request: ProfileRequest,
  { service, scan, ...download }: ProfileDeps<Output>,
): Promise<CheckedBody<Output> | NoSnapshot> {
  const result = await downloadChecked({
    ...download,
    label: 'profiles',
    mayGrow: true,
    send: (signal) => service.exportProfiles(request, signal),
    scan: { ...scan, requireColumns: false },
  });
  if (result.kind !== 'checked') {
    const { code, clause } = result;
    const kind = code === NOT_FOUND ? 'unavailable' : KIND_OF_FAILURE[result.kind];
    // The clause of a download that failed names the export already.
    const isNamed = kind !== 'busy' || result.kind === 'failed';
    return { kind, message: sentenceOf(isNamed ? clause : `the export of profiles failed: ${clause}`) };
  }
  if (result.scan.header.includes(UNIFIED_ID)) return result;
  return { kind: 'refused', message: `The export of profiles has no column ${UNIFIED_ID}: is base_url right?` };
}

const KIND_OF_FAILURE: Readonly<Record<DownloadFailure['kind'], NoSnapshot['kind']>> = {
  gone: 'unavailable',
  config: 'refused',
  unsupported: 'refused',
  invalid: 'invalid',
  empty: 'busy',
  too_large: 'busy',
  failed: 'busy',
};
