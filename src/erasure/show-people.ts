import { configError } from '../base/errors.ts';
import type { RunContext } from '../base/runtime.ts';
import { Ledger, type LedgerSettings } from './ledger/ledger.ts';
import { DeletionList, type ListRow, refusedSentence } from './list.ts';
import { findInAllWays, placeName, type Ways } from './ways.ts';

export interface PersonOptions {
  readonly rows: AsyncIterable<ListRow>;
  readonly ways: Ways;
  /** Undefined: nothing is kept. */
  readonly ledger: LedgerSettings | undefined;
  readonly io: RunContext;
  write(line: string): Promise<void>;
}

/**
 * Shows everything that places hold about people, found as by a purge: one JSON object a row. Each id gets a line
 * `access` in the ledger before anything is shown, also if no row was found. Throws UserError.
 */
export async function showPeople(request: PersonOptions): Promise<{ readonly ids: number; readonly rows: number }> {
  const { ways, io, write } = request;
  const { places, column, hashKey, options } = ways;
  const list = new DeletionList();
  for await (const row of request.rows) list.add(row);
  const listed = list.ids();
  const refused = refusedSentence(list.counts);
  if (refused !== undefined && listed.length === 0) throw configError(`Nobody was looked for. ${refused}`);
  const listedPeople = await findInAllWays(listed, ways, io);
  const { peopleOf, asksProfiles, usedWays } = listedPeople;
  const query = { ids: listed.map(({ id }) => id), column, asksProfiles, peopleOf, hashKey };
  const warnings = [refused ?? [], list.warnings(), listedPeople.warnings].flat();
  const rowsOfPlaces: ReadonlyMap<string, number>[] = [];
  for (const { target, path } of places) {
    const place = await (await target.people()).find(path, query, options);
    rowsOfPlaces.push(place.rowsOf);
    warnings.push(...place.warnings);
  }
  for (const warning of new Set(warnings)) io.logger.warn('person.list', warning);
  if (request.ledger !== undefined) {
    const ledger = await Ledger.open(request.ledger, { clock: io.clock, isPlan: false });
    const names = places.map(placeName);
    await ledger.begin({ ids: 0, places: names, requests: false });
    await ledger.writeAll(
      listed.map(({ id }) => {
        const rows = rowsOfPlaces.reduce((sum, rowsOf) => sum + (rowsOf.get(id) ?? 0), 0);
        return { kind: 'access', id: ledger.key.idHash(id), places: names, ways: usedWays, rows };
      }),
    );
  }
  let rows = 0;
  for (const place of places) {
    const reader = await place.target.people();
    const name = JSON.stringify(placeName(place));
    for await (const row of reader.rows(place.path, query, options)) {
      io.signal.throwIfAborted();
      await write(`{"place":${name},${row.slice(1)}`);
      rows++;
    }
  }
  return { ids: listed.length, rows };
}
