import { configError, EXIT, transientError, UserError } from '../base/errors.ts';
import { joinNames, MAX_NAMED_IN_RECORD } from '../base/text.ts';
import type { PeopleFindings } from '../engine/people/people.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { Removal } from '../targets/contract.ts';
import type { LineContent } from './ledger/lines.ts';
import { type PlannedPlace, type PurgePlan, purgeGuardProblem, unifiedIdsOf } from './purge-plan.ts';
import { refuseOlderList } from './suppression-list.ts';

/** What a purge has done in the places of its plan. */
export interface PurgeOutcome {
  readonly places: readonly PlaceOutcome[];
  /** The warnings of the plan are not repeated. */
  readonly warnings: readonly string[];
  /** Why people are, or may be, still in places or in folders with downloads. */
  readonly failures: readonly UserError[];
}

/** What became of a place, and who was found there last. */
export interface PlaceOutcome extends PlannedPlace {
  /** Present once all rows that can be read are removed, and the ledger says so. */
  readonly removal?: Removal | undefined;
  /** Why the people are, or may be, still there. */
  readonly failure?: UserError | undefined;
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if the list cannot be written, or if it is stopped.
 */
export async function purgePlaces(plan: PurgePlan): Promise<PurgeOutcome> {
  const { runtime, suppressionList, hashKey } = plan.settings;
  await suppressionList.add(unifiedIdsOf(plan, plan.places), { ...runtime, hashKey });
  const places: PlaceOutcome[] = [];
  for (const [i, place] of plan.places.entries()) {
    runtime.signal.throwIfAborted();
    runtime.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${plan.places.length}) …`);
    places.push(await purgePlace(place, [...places, ...plan.places.slice(i + 1)], plan));
  }
  const { stuckFolders, liveFolders, foreignFolders } = await sweepRunFolders(runtime.spoolDir);
  const foldersInUse = [...places.flatMap(({ removal }) => removal?.liveFolders ?? []), ...liveFolders];
  const warnings: string[] = [];
  if (foldersInUse.length > 0)
    warnings.push(
      `Other runs are under way. Until they end, they hold downloads in ${joinNames(foldersInUse, MAX_NAMED_IN_RECORD)}.`,
    );
  const stayText = (folders: readonly string[]) =>
    `may name the people, and stay: ${joinNames(folders, MAX_NAMED_IN_RECORD)}.`;
  if (foreignFolders.length > 0)
    warnings.push(`Downloads in folders that are not of this user alone ${stayText(foreignFolders)}`);
  const failures = places.flatMap(({ failure }) => failure ?? []);
  if (stuckFolders.length > 0)
    failures.push(transientError(`Downloads of dead runs ${stayText(stuckFolders)} Remove them.`));
  return { places, warnings, failures };
}

/** Removes the people from a place. The guards hold for it and the other places together. */
async function purgePlace(
  place: PlannedPlace,
  otherPlaces: readonly PlannedPlace[],
  plan: PurgePlan,
): Promise<PlaceOutcome> {
  const { settings, ledger, listedPeople } = plan;
  const { runtime, suppressionList, hashKey } = settings;
  const { target, name, foreignNames } = place;
  let { findings } = place;
  try {
    // 1. Lock: the target keeps other writers out, and looks the people up anew.
    const query = { ...listedPeople.query, suppressionHmacs: suppressionList.readHmacs(hashKey) };
    const removal = await (await target.peopleOperations(place)).purge(query, async (findingsNow) => {
      findings = findingsNow;
      // 2. Guards.
      const problem = purgeGuardProblem(plan, [...otherPlaces, { ...place, findings }]);
      if (problem !== undefined)
        throw configError(`${name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
      if (!settings.beginsNewList)
        refuseOlderList(name, findings.state.suppressionLength, suppressionList.readLength());
      // 3. Ledger, 4. suppression list. After a kill between them the same command finds the rows, and writes both again.
      await ledger.write(purgeLines(name, findings, plan));
      return await suppressionList.add(findings.unifiedIds, { ...runtime, hashKey });
    });
    // 5. The rows are removed. The place counts as purged once the ledger says so.
    const { rowsRemoved: rows, unreached } = removal;
    const suppressed = suppressionList.readLength();
    const isUnreached = unreached.length > 0;
    await ledger.write({ kind: 'purged', place: name, rows, suppressed, stays: foreignNames, unreached: isUnreached });
    const failure = isUnreached ? transientError(`${name}: ${unreached.join(' ')}`) : undefined;
    return { ...place, findings, removal, failure };
  } catch (thrown) {
    runtime.signal.throwIfAborted();
    const failure = diskErrorByItsPath(thrown);
    if (!(failure instanceof UserError)) throw failure;
    return { ...place, findings, failure };
  }
}

/** A line for each id that is looked for, and one for the others on the suppression list together. */
function purgeLines(place: string, findings: PeopleFindings, plan: PurgePlan): LineContent[] {
  const { settings, ledger, soughtIds, listedPeople } = plan;
  const linesOfIds = soughtIds.map(({ id, request }) => {
    const rows = findings.rowCountById.get(id) ?? 0;
    const found = rows > 0 || (listedPeople.query.knownUnifiedIdsById.get(id) ?? []).length > 0;
    const isDue = request === 'due';
    return { kind: 'purge', id: ledger.keys.idKey.hashOf(id), place, rows, found, request: isDue } as const;
  });
  const { rowCount: rows } = findings.suppressedOthers;
  return rows > 0 || settings.isSuppressedOnly ? [...linesOfIds, { kind: 'purge', id: null, place, rows }] : linesOfIds;
}
