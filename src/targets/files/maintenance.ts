import type { Day } from '../../base/days.ts';
import { undefinedIfAbsent } from '../../base/errors.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { checkRows, type Difference, difference, type VerifyResult } from '../../engine/rows/check-rows.ts';
import { countForReport } from '../../engine/rows/report-counts.ts';
import { dayWarnings } from '../../table/place-warnings.ts';
import { nextChangedAt, prunableBefore, withPruned } from '../../table/receipts.ts';
import { EVENTS, TABLES } from '../../table/tables.ts';
import type { Maintenance, PlaceOptions, PruneResult, TargetReport } from '../contract.ts';
import { type FilesPlace, readPlace, withPlace } from './files-place.ts';
import type { FilesFormat } from './format.ts';
import { bytesIn, type LiveFile, type PlaceChange } from './place-version.ts';
import { hashFile } from './read-parquet.ts';

export const maintenanceOfFiles = (format: FilesFormat, options: PlaceOptions): Maintenance => ({
  readState: () => readPlace(format, options, async ({ manifest }) => manifest.version?.state),
  verify: () =>
    readPlace(
      format,
      options,
      (place) => verify(place, options.signal),
      ({ differences }) => differences.length === 0,
    ),
  report: () => readPlace(format, options, report),
  prune: (firstKeptDay, execute) => prune(format, options, firstKeptDay, execute),
});

/** Compares every file with the manifest. If all are whole, it compares the rows with the receipts. */
async function verify(place: FilesPlace, signal: AbortSignal): Promise<VerifyResult> {
  const { engine, version } = place;
  const { state } = version;
  const differences = (await place.manifest.check?.()) ?? [];
  for (const file of version.files) {
    signal.throwIfAborted();
    differences.push(...(await checkFile(place, file)));
  }
  const warnings = dayWarnings(state.events);
  if (differences.length > 0) return { differences, warnings };
  for (const table of TABLES) {
    const tableState = state[table.name];
    if (tableState === undefined) continue;
    const rows = await checkRows(engine, table, await place.relationOf(table.name, tableState), tableState);
    differences.push(...rows.differences);
    warnings.push(...rows.warnings);
  }
  return { differences, warnings };
}

/** Checks that a file is there, and is the one that was written. */
async function checkFile(place: FilesPlace, file: LiveFile): Promise<Difference[]> {
  const { path, sha256 } = file;
  const hash = await hashFile(await place.localFiles.fetch(file)).catch(undefinedIfAbsent);
  if (hash === undefined) return [difference('files', `${path} is missing`)];
  return hash === sha256 ? [] : [difference('files', `${path} is not the file that was written`)];
}

async function report(place: FilesPlace): Promise<TargetReport> {
  const { state } = place.version;
  const { columns, timezone } = state.events;
  const events = await place.relationOf(EVENTS.name, state.events);
  const counted = await countForReport(place.engine, events, columns, zoneOf(timezone));
  return {
    state,
    ...counted,
    sizeBytes: bytesIn(place.version),
    runs: state.lastRun === undefined ? [] : [state.lastRun],
  };
}

/** Removes the days before `firstKeptDay`; their receipts stay. */
function prune(format: FilesFormat, options: PlaceOptions, firstKeptDay: Day, execute: boolean): Promise<PruneResult> {
  const planPrune = ({ version }: FilesPlace): PruneResult =>
    prunableBefore(version.state.events.receipts, firstKeptDay);
  if (!execute) return readPlace(format, options, async (place) => planPrune(place));
  return withPlace(format, options, 'rewrite', (place) =>
    place.commit(async () => {
      const { state } = place.version;
      const result = planPrune(place);
      const { receipts } = state.events;
      const pruned = withPruned(receipts, result.days, nextChangedAt(receipts, options.clock.now()));
      const after = { ...state, events: { ...state.events, receipts: pruned } };
      const files = result.days.map((day) => ({ table: EVENTS.name, day, file: undefined }));
      const change: PlaceChange = { kind: 'prune', state: after, files };
      return { change, report: result };
    }),
  );
}
