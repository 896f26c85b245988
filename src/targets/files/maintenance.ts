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
import { EVENTS } from '../../table/tables.ts';
import type { Maintenance, Pruned, TargetReport, Verified } from '../contract.ts';
import type { FilesPlace } from './files-place.ts';
import type { Change, DayFile, FilesFormat, FilesOptions } from './format.ts';
import { describeFile, fingerprint } from './parquet-file.ts';
import { readPlace, withPlace } from './with-place.ts';

export const maintenanceOf = (format: FilesFormat): Maintenance => ({
  readState: (place, options) => readPlace(format, { ...options, place }, async ({ log }) => log.version?.state),
  verify: (place, options) =>
    readPlace(
      format,
      { ...options, place },
      (open) => verify(open, options.signal),
      ({ differences }) => differences.length === 0,
    ),
  report: (place, options) => readPlace(format, { ...options, place }, report),
  prune: (place, before, options) => prune(format, { ...options, place }, before, options.execute),
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
  const from = await place.rows();
  const counted = from === undefined ? new Map<Day, number>() : await rowsByDay(place.engine, from);
  differences.push(...checkRows(state.receipts, counted));
  if (from !== undefined) {
    const faults = await countKeyFaults(place.engine, from);
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
  const odd = described.find(({ name, type }) => expected.get(name) !== type);
  const message = `${path} has ${plainCount(rows, 'row')} and the column ${odd?.name} of type ${odd?.type}`;
  return odd === undefined ? [] : [difference('columns', `${message}, which is not that of the table`)];
}

/** Checks the file of profiles, and its rows. */
async function checkProfilesFile(place: FilesPlace): Promise<Difference[]> {
  const { state, profiles: file } = place.version;
  const table = profilesAsTable(state);
  if (table === undefined) return [];
  const differences = file === undefined ? [] : await checkFile(place, file, table);
  if (differences.length > 0) return differences;
  const from = await place.rowsOfProfiles();
  if (from === undefined) return checkProfiles(table, { rows: 0, keys: 0 });
  const keys = await place.engine.count(`(SELECT DISTINCT _key FROM ${from} WHERE _key IS NOT NULL)`);
  return checkProfiles(table, { rows: await place.engine.count(from), keys });
}

async function report(place: FilesPlace): Promise<TargetReport> {
  const { state, files, profiles } = place.version;
  const { columns, timezone } = state;
  const events = await place.rows();
  const counted = await countForReport(place.engine, events, columns, zoneOf(timezone));
  const sizeBytes = [...files.values()].reduce((sum, { bytes }) => sum + bytes, profiles?.bytes ?? 0);
  return { state, ...counted, sizeBytes, runs: state.lastRun === undefined ? [] : [state.lastRun] };
}

/** Removes the days before a day; their receipts stay. */
function prune(format: FilesFormat, options: FilesOptions, before: Day, execute: boolean): Promise<Pruned> {
  const planned = ({ version: { state, files }, format: { pathOf } }: FilesPlace) => {
    const { days, rows } = prunableBefore(state.receipts, before);
    const removed = days.map((day) => files.get(day) ?? { day, path: pathOf(day, EVENTS.name) });
    return { days, removed, rows };
  };
  if (!execute) {
    return readPlace(format, options, async (place) => {
      const { days, rows } = planned(place);
      return { days, rows };
    });
  }
  return withPlace(format, options, 'rewrite', (place) =>
    place.commit(async () => {
      const { days, removed, rows } = planned(place);
      const { state } = place.version;
      const changedAt = nextChangedAt(state.receipts, options.clock.now());
      const after = { ...state, receipts: withPruned(state.receipts, days, changedAt) };
      const change: Change = { kind: 'prune', state: after, events: { removed, added: [] } };
      return { change: days.length === 0 ? undefined : change, report: { days, rows } };
    }),
  );
}
