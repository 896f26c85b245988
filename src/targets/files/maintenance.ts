import type { Day } from '../../base/days.ts';
import { undefinedIfAbsent } from '../../base/errors.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { checkRows, type Difference, type VerifyResult } from '../../engine/rows/check-rows.ts';
import { countForReport } from '../../engine/rows/report-counts.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { dayWarnings, syncAdvice } from '../../table/place-warnings.ts';
import { prunableBefore, withPrunedDays } from '../../table/receipts.ts';
import { EVENTS, TABLES } from '../../table/tables.ts';
import type { Maintenance, PlaceOptions, PlaceReport, PruneResult } from '../contract.ts';
import type { FilesFormat, OpenPlace } from './format.ts';
import { readPlace, requireLoaded, warnOfDamage, withPlace } from './open-place.ts';
import { hashFile } from './parquet-file.ts';
import { bytesIn, damageWarnings, type PlaceVersion, type PreparedChange } from './place-version.ts';
import { relationSqlOf } from './read-files.ts';

export const maintenanceOfFiles = (format: FilesFormat, options: PlaceOptions): Maintenance => ({
  readState: () =>
    withPlace(format, options, 'read', async (_place, { isLoaded, state }) => (isLoaded ? state : undefined)),
  verify: () => readPlace(format, options, verify, ({ differences }) => differences.length === 0),
  report: () => readPlace(format, options, report),
  prune: (firstKeptDay, execute) => prune(format, options, firstKeptDay, execute),
});

/** Compares every file with the version. If all are whole, it compares the rows with the receipts. */
async function verify(place: OpenPlace, version: PlaceVersion): Promise<VerifyResult> {
  const { state, files } = version;
  const fileProblems = await findFileProblems(place, version);
  const differences = fileProblems.map((message): Difference => ({ check: 'files', message }));
  const warnings = dayWarnings(state.events);
  if (differences.length > 0) return { differences, warnings };
  for (const table of TABLES) {
    const tableState = state[table.name];
    if (tableState === undefined) continue;
    const relation = await relationSqlOf(place.localFiles, table.name, tableState, files);
    const rowsResult = await checkRows(place.engine, table, relation, tableState);
    differences.push(...rowsResult.differences);
    warnings.push(...rowsResult.warnings);
  }
  return { differences, warnings };
}

/** A sentence about each file that is not as the version has it, and each of others that readers see. */
async function findFileProblems(place: OpenPlace, version: PlaceVersion): Promise<string[]> {
  const problems = damageWarnings(version);
  for (const { path, isSeenByReaders } of await place.format.findForeignFiles(place, version)) {
    if (isSeenByReaders) problems.push(`${path} is not of this program, and readers see it`);
  }
  for (const file of version.files) {
    place.options.signal.throwIfAborted();
    const localPath = await place.localFiles.localPathOf(file);
    const hash = await withDiskErrors({ path: localPath, verb: 'used' }, hashFile(localPath).catch(undefinedIfAbsent));
    if (hash === undefined) problems.push(`${file.path} is missing`);
    else if (hash !== file.sha256) {
      const isOfDay = file.tableName === EVENTS.name;
      const remedy = isOfDay ? syncAdvice([file.day]) : 'remove it and sync with user_profiles set to true';
      problems.push(`${file.path} is not the file that was written: put the right copy back, or ${remedy}`);
    }
  }
  return problems;
}

async function report(place: OpenPlace, version: PlaceVersion): Promise<PlaceReport> {
  const { state } = version;
  const { events, lastRun } = state;
  const relation = await relationSqlOf(place.localFiles, EVENTS.name, events, version.files);
  const counts = await countForReport(place.engine, relation, events.columns, zoneOf(events.timezone));
  const runs = lastRun === undefined ? [] : [lastRun];
  return { state, ...counts, sizeBytes: bytesIn(version), runs };
}

/** Removes the days before `firstKeptDay`, if `execute` says so. */
function prune(format: FilesFormat, options: PlaceOptions, firstKeptDay: Day, execute: boolean): Promise<PruneResult> {
  const plan = (version: PlaceVersion) => planPrune(version, firstKeptDay, options.clock.now());
  if (!execute) return readPlace(format, options, async (_place, version) => plan(version).result);
  return withPlace(format, options, 'purge or prune', async (place, versionAtOpen) => {
    const { version: versionAfter, result } = await format.commit(place, versionAtOpen, async (version) => {
      requireLoaded(place, version);
      return plan(version);
    });
    warnOfDamage(place, versionAfter);
    return result;
  });
}

/** Plans to remove the files of the days with rows, and damaged files. All receipts stay. */
function planPrune({ state, damagedFiles }: PlaceVersion, firstKeptDay: Day, now: number): PreparedChange<PruneResult> {
  const { events } = state;
  const { days: daysWithRows, rows } = prunableBefore(events.receipts, firstKeptDay);
  const receipts = withPrunedDays(events.receipts, daysWithRows, now);
  const damagedDays = damagedFiles.filter(({ tableName }) => tableName === EVENTS.name).map(({ day }) => day);
  const days = [...new Set([...daysWithRows, ...damagedDays.filter((day) => day < firstKeptDay)])].sort();
  const fileChanges = days.map((day) => ({ tableName: EVENTS.name, day, newFile: undefined }));
  const change = { kind: 'prune', state: { ...state, events: { ...events, receipts } }, fileChanges } as const;
  return { change, result: { days, rows } };
}
