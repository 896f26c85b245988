import type { Day } from '../../base/days.ts';
import { codeOf } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { countKeyFaults, rowsByDay } from '../../engine/rows/counts.ts';
import { countForReport } from '../../engine/rows/report-counts.ts';
import { checkKeys, checkProfiles, checkRows, type Difference, difference } from '../../table/differences.ts';
import { profilesAsTable, type TableState } from '../../table/place-state.ts';
import { dayWarnings, keyWarnings } from '../../table/place-warnings.ts';
import { nextChangedAt, prunableBefore, withPruned } from '../../table/receipts.ts';
import type { Maintenance, Pruned, TargetReport, Verified } from '../maintenance-contract.ts';
import type { FilesPlace } from './files-place.ts';
import { bytesIn, type Change, type DayFile, type FilesFormat, type FilesOptions } from './format.ts';
import { describeFile, fingerprint } from './parquet-file.ts';
import { readPlace, withPlace } from './with-place.ts';

export const maintenanceOf = (format: FilesFormat): Maintenance => ({
  readState: (address, options) => readPlace(format, { ...options, address }, async ({ log }) => log.version?.state),
  verify: (address, options) =>
    readPlace(
      format,
      { ...options, address },
      (place) => verify(place, options.signal),
      ({ differences }) => differences.length === 0,
    ),
  report: (address, options) => readPlace(format, { ...options, address }, report),
  prune: (address, before, options) => prune(format, { ...options, address }, before, options.execute),
});

/** Compares every file with the log, and all rows with the receipts. */
async function verify(place: FilesPlace, signal: AbortSignal | undefined): Promise<Verified> {
  const { state, files } = place.version;
  const differences = [...(await place.log.check())];
  for (const file of files.values()) {
    signal?.throwIfAborted();
    differences.push(...(await checkFile(place, file, state)));
  }
  differences.push(...(await checkProfilesFile(place)));
  const warnings = dayWarnings(state);
  const { size } = place.version.unfinishedDays;
  if (size > 0) {
    warnings.push(
      `${plainCount(size, 'file lacks', 'files lack')} columns, since a run was killed: the next sync adds them.`,
    );
  }
  if (differences.length > 0) return { differences, warnings };
  const events = await place.eventsRelation();
  const counted = events === undefined ? new Map<Day, number>() : await rowsByDay(place.engine, events);
  differences.push(...checkRows(state.receipts, counted));
  if (events !== undefined) {
    const faults = await countKeyFaults(place.engine, events);
    differences.push(...checkKeys(faults));
    warnings.push(...keyWarnings(faults));
  }
  return { differences, warnings };
}

/** Checks that a file is there, is the one that was written, and has the columns of the state. */
async function checkFile(
  place: FilesPlace,
  file: DayFile,
  state: Pick<TableState, 'columns' | 'timezone'>,
): Promise<Difference[]> {
  const { path, rows, sha256 } = file;
  const local = await place.fetch(file);
  const hash = await fingerprint(local).catch((error) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (hash === undefined) return [difference('files', `${path} is missing`)];
  if (hash !== sha256) return [difference('files', `${path} is not the file that was written`)];
  if (place.version.unfinishedDays.has(file.day)) return [];
  const expected = new Map(place.format.columnsOf(state).map(({ name, type }) => [name, type]));
  const described = await describeFile(place.engine, local);
  const mismatch = described.find(({ name, type }) => expected.get(name) !== type);
  const message = `${path} has ${plainCount(rows, 'row')} and the column ${mismatch?.name} of type ${mismatch?.type}`;
  return mismatch === undefined ? [] : [difference('columns', `${message}, which is not that of the table`)];
}

/** Checks the file of profiles, and its rows. */
async function checkProfilesFile(place: FilesPlace): Promise<Difference[]> {
  const { state, profiles: file } = place.version;
  const table = profilesAsTable(state);
  if (table === undefined) return [];
  const differences = file === undefined ? [] : await checkFile(place, file, table);
  if (differences.length > 0) return differences;
  const profiles = await place.profilesRelation();
  if (profiles === undefined) return checkProfiles(table, { rows: 0, keys: 0 });
  const keys = await place.engine.count(`(SELECT DISTINCT _key FROM ${profiles} WHERE _key IS NOT NULL)`);
  return checkProfiles(table, { rows: await place.engine.count(profiles), keys });
}

async function report(place: FilesPlace): Promise<TargetReport> {
  const { state } = place.version;
  const { columns, timezone } = state;
  const events = await place.eventsRelation();
  const counted = await countForReport(place.engine, events, columns, zoneOf(timezone));
  return {
    state,
    ...counted,
    sizeBytes: bytesIn(place.version),
    runs: state.lastRun === undefined ? [] : [state.lastRun],
  };
}

/** Removes the days before a day; their receipts stay. */
function prune(format: FilesFormat, options: FilesOptions, before: Day, execute: boolean): Promise<Pruned> {
  const planPrune = ({ version }: FilesPlace): Pruned => prunableBefore(version.state.receipts, before);
  if (!execute) return readPlace(format, options, async (place) => planPrune(place));
  return withPlace(format, options, 'rewrite', (place) =>
    place.commit(async () => {
      const { state } = place.version;
      const report = planPrune(place);
      const changedAt = nextChangedAt(state.receipts, options.clock.now());
      const after = { ...state, receipts: withPruned(state.receipts, report.days, changedAt) };
      const change: Change = { kind: 'prune', state: after, events: { removed: report.days, added: [] } };
      return { change: report.days.length === 0 ? undefined : change, report };
    }),
  );
}
