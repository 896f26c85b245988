import { HOUR_MS } from '../base/clock.ts';
import { dayAt } from '../base/days.ts';
import { configError, transientError, type UserError } from '../base/errors.ts';
import { unseparatedCount } from '../base/quantities.ts';
import { sentenceOf } from '../base/text.ts';
import { RunFolder } from '../fs/run-folder.ts';
import type { DownloadFailure } from '../service/export/export-service.ts';
import { ALL_PROPERTIES, downloadProfiles } from '../service/export/profiles.ts';
import { type CheckedDay, checkedDayOf, type Receipt } from './checked-day.ts';
import { type ExportSettings, profileFingerprintsOf } from './export-settings.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { checkedFileOf, openSpoolOutput } from './spool.ts';

/** Age (ms) at which a snapshot of the profiles is loaded again. */
const MAX_AGE_MS = 20 * HOUR_MS;
/** A snapshot with a smaller part of the rows of the one before is warned about. */
const MIN_SNAPSHOT_PART = 0.5;

/** What a place has stored of its snapshot; `rows_stored`: rows that it has now, without those of erased people. */
type StoredSnapshot = Pick<Receipt, 'requested_at' | 'rows' | 'filters'> & { readonly rows_stored: number };

/** True if a place has no snapshot, an old one, or one with other columns that are dropped or hashed. */
export function isSnapshotDue(
  lastSnapshot: StoredSnapshot | undefined,
  settings: ExportSettings,
  now: number,
): boolean {
  if (lastSnapshot === undefined || lastSnapshot.filters !== profileFingerprintsOf(settings).filtersHash) return true;
  return Math.abs(now - Date.parse(lastSnapshot.requested_at)) >= MAX_AGE_MS;
}

/**
 * Downloads all profiles into a file, and calls `store` with it, as the day of the request. Throws a UserError if the
 * service gives none: exit 3 for what may pass, 2 for what the user must change. Throws what `store` throws, failures
 * of the disk and of the quota, and the signal's reason.
 */
export async function loadSnapshot(
  lastSnapshot: StoredSnapshot | undefined,
  settings: ExportSettings,
  deps: ExtractDeps,
  store: (snapshot: CheckedDay, commitInfo: CommitInfo) => Promise<void>,
): Promise<void> {
  const { service, spoolDir, clock, logger } = deps;
  const requestedAt = clock.now();
  const spool = await RunFolder.open(spoolDir, clock);
  try {
    const download = await downloadProfiles(ALL_PROPERTIES, { ...deps, openOutput: () => openSpoolOutput(spool) });
    if (download.kind !== 'checked') throw snapshotError(download, lastSnapshot);
    const file = checkedFileOf(download);
    service.markColumnsSeen(file.editedNames);
    const { rows } = file;
    const { rows: rowsBefore, rows_stored: rowsInPlace } = lastSnapshot ?? { rows: 0, rows_stored: 0 };
    if (rows === 0 && rowsInPlace > 0) {
      const stored = unseparatedCount(rowsInPlace, 'profile');
      throw transientError(`The export of profiles has no row: the place keeps its ${stored}. Run again later.`);
    }
    if (rows < rowsBefore * MIN_SNAPSHOT_PART) {
      const message = `The export of profiles has ${unseparatedCount(rows, 'row')}, and had ${rowsBefore}: it replaces them.`;
      logger.warn('profiles.fewer_rows', message, { rows, before: rowsBefore });
    }
    // Targets store a snapshot as a day that is over, alone in its table.
    const day = dayAt(requestedAt);
    const fingerprints = profileFingerprintsOf(settings);
    const snapshot = checkedDayOf([file], {
      day,
      to_date: day,
      requestedAt,
      is_over: true,
      filters: fingerprints.filtersHash,
      exports: download.exportCount,
      verifiedAt: clock.now(),
    });
    // It replaces the one before also if it is the same.
    await store(snapshot, { start: day, fingerprints, alwaysWrites: true });
  } finally {
    await spool.remove();
  }
}

/** Why the profiles were not loaded, and what to do. For a stream of Airbyte `lastSnapshot` is undefined. */
function snapshotError({ kind, clause }: DownloadFailure, lastSnapshot: StoredSnapshot | undefined): UserError {
  const sentence = `${sentenceOf(clause)}${lastSnapshot === undefined ? '' : ' The stored profiles stay.'}`;
  if (kind === 'later') return transientError(`${sentence} Run again later.`);
  return configError(`${sentence} To go on without profiles, leave out user_profiles.`);
}
