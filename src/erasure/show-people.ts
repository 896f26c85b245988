import { configError } from '../base/errors.ts';
import type { PeopleFindings } from '../engine/people/people.ts';
import { Ledger, type LedgerSettings } from './ledger/ledger.ts';
import { type IdList, refusedParagraph } from './list/id-list.ts';
import { findListedPeople, refusePlaceOfOtherService, type SearchSettings } from './listed-people.ts';

/**
 * Writes everything that places hold about people, found as by a purge: one JSON object a row. Each id gets a line
 * `access` in the ledger before anything is shown, also if no row was found. Without settings of a ledger nothing is
 * kept. Throws UserError.
 */
export async function showPeople(
  list: IdList,
  search: SearchSettings,
  ledgerSettings: LedgerSettings | undefined,
  write: (line: string) => Promise<void>,
) {
  const { places, runtime } = search;
  const listedIds = list.listedIds();
  const refusals = refusedParagraph(list.counts);
  if (refusals !== undefined && listedIds.length === 0) throw configError(`Nobody was looked for. ${refusals}`);
  const listedPeople = await findListedPeople(listedIds, search);
  const findingsOfPlaces: PeopleFindings[] = [];
  for (const place of places) {
    const findings = await (await place.target.peopleOperations(place)).find(listedPeople.query);
    refusePlaceOfOtherService(place, findings, search.serviceId);
    findingsOfPlaces.push(findings);
  }
  const warnings = [
    refusals ?? [],
    list.warnings(),
    listedPeople.warnings,
    ...findingsOfPlaces.map(({ warnings }) => warnings),
  ].flat();
  for (const warning of new Set(warnings)) runtime.logger.warn('person.list', warning);
  if (ledgerSettings !== undefined) {
    const ledger = await Ledger.open(ledgerSettings, { clock: runtime.clock, isPlan: false });
    const names = places.map(({ name }) => name);
    await ledger.begin({ ids: 0, places: names, requests: false });
    await ledger.write(
      listedIds.map(({ id }) => {
        const rows = findingsOfPlaces.reduce((sum, { rowCountById }) => sum + (rowCountById.get(id) ?? 0), 0);
        return { kind: 'access', id: ledger.keys.idKey.hashOf(id), places: names, ways: listedPeople.usedWays, rows };
      }),
    );
  }
  let rows = 0;
  for (const place of places) {
    const operations = await place.target.peopleOperations(place);
    for await (const row of operations.rows(listedPeople.query)) {
      runtime.signal.throwIfAborted();
      // The member of the place stands before those of the row, which is a JSON object.
      await write(`{"place":${JSON.stringify(place.name)},${row.slice(1)}`);
      rows++;
    }
  }
  return { ids: listedIds.length, rows };
}
