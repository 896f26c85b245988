import { HOUR_MS } from '../base/clock.ts';
import { dayAt } from '../base/days.ts';
import { configError, transientError, type UserError } from '../base/errors.ts';
import { sha256OfJson } from '../base/json.ts';
import { plainCount } from '../base/quantities.ts';
import { sentenceOf } from '../base/visible-text.ts';
import { UNIFIED_ID } from '../cells/csv/header.ts';
import { RunFolder } from '../fs/run-folder.ts';
import type { ExportRefusal } from '../service/export/export-service.ts';
import { ALL_PROPERTIES, downloadProfiles } from '../service/export/profiles.ts';
import { type CheckedDay, checkedDayOf, type Receipt, rowCount } from './checked-day.ts';
import { type ExportSettings, hashedColumnsOf, serviceFingerprint } from './export-settings.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { newSpoolFile } from './spool.ts';

/** Age (ms) at which a snapshot of the profiles is loaded again. */
const MAX_AGE_MS = 20 * HOUR_MS;
/** A snapshot with a smaller part of the rows of the one before is warned about. */
const USUAL_PART = 0.5;

/** The settings that decide what of the profiles is stored. */
type ProfileSettings = Pick<ExportSettings, 'serviceId' | 'columnsDrop' | 'columnsHash' | 'hashKey'>;

/** What a place has stored of its snapshot. */
type StoredSnapshot = Pick<Receipt, 'requested_at' | 'rows' | 'filters'>;

/** Hash of what decides the columns of a snapshot. */
function profileFingerprint(settings: ProfileSettings): string {
  const { columns, key_check } = hashedColumnsOf(settings);
  return sha256OfJson([[...new Set(settings.columnsDrop)].sort(), columns, key_check]);
}

/** True if a place has no snapshot, an old one, or one with other columns that are dropped or hashed. */
export function isSnapshotDue(stored: StoredSnapshot | undefined, settings: ProfileSettings, now: number): boolean {
  if (stored === undefined || stored.filters !== profileFingerprint(settings)) return true;
  return Math.abs(now - Date.parse(stored.requested_at)) >= MAX_AGE_MS;
}

/**
 * Downloads all profiles into a file, and calls `store` with it, as the day of the request. Throws a UserError if the
 * service gives none: exit 3 for what may pass, 2 for what the user must change. Throws what `store` throws, failures
 * of the disk and of the quota, and the signal's reason.
 */
export async function loadSnapshot(
  stored: StoredSnapshot | undefined,
  settings: ProfileSettings,
  deps: ExtractDeps,
  store: (snapshot: CheckedDay, commitInfo: CommitInfo) => Promise<void>,
): Promise<void> {
  const { service, spoolDir, scannerOptions, clock, logger } = deps;
  const began = clock.now();
  const spool = await RunFolder.open(spoolDir, clock);
  try {
    const answer = await downloadProfiles(ALL_PROPERTIES, {
      ...deps,
      scannerOptions: { ...scannerOptions, idColumn: UNIFIED_ID },
      openOutput: () => newSpoolFile(spool),
    });
    if (answer.kind !== 'checked') throw snapshotError(answer, stored);
    service.learnColumns(answer.scan.editedNames);
    const rows = rowCount([answer]);
    if (rows === 0 && stored !== undefined && stored.rows > 0) {
      const profiles = plainCount(stored.rows, 'profile');
      throw transientError(
        `The export of profiles has no row, and ${profiles} are stored: they stay. Run again later.`,
      );
    }
    if (stored !== undefined && rows < stored.rows * USUAL_PART) {
      const before = stored.rows;
      const message = `The export of profiles has ${plainCount(rows, 'row')}, and had ${before}: it replaces them.`;
      logger.warn('profiles.fewer_rows', message, { rows, before });
    }
    const day = dayAt(began);
    const filters = profileFingerprint(settings);
    const now = clock.now();
    const snapshot = checkedDayOf([answer], {
      day,
      to_date: day,
      requestedAt: began,
      is_over: true,
      filters,
      exports: answer.exports,
      verifiedAt: now,
    });
    await store(snapshot, {
      now,
      start: day,
      fingerprints: { service: serviceFingerprint(settings), filters },
      hashedColumns: hashedColumnsOf(settings),
      // It replaces the one before also if it is the same.
      rewrites: true,
    });
  } finally {
    await spool.remove();
  }
}

/** Why the profiles were not loaded, and what to do. For a stream of Airbyte `stored` is undefined. */
function snapshotError({ kind, clause }: ExportRefusal, stored: StoredSnapshot | undefined): UserError {
  const sentence = `${sentenceOf(clause)}${stored === undefined ? '' : ' The stored profiles stay.'}`;
  if (kind === 'retry') return transientError(`${sentence} Run again later.`);
  return configError(`${sentence} To go on without profiles, leave out user_profiles.`);
}
