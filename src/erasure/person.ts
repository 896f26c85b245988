import { configError } from '../base/errors.ts';
import type { PlaceOptions } from '../targets/contract.ts';
import { Ledger, type LedgerSettings } from './ledger/ledger.ts';
import { DeletionList, type ListRow, refusedSentence } from './list.ts';
import { readMapping } from './mapping.ts';
import { type PurgeRequest, placeName } from './place.ts';

export interface PersonOptions extends Pick<PurgeRequest, 'places' | 'column' | 'hashKey'> {
  readonly rows: AsyncIterable<ListRow>;
  /** File with the columns external_id and df_unified_id. */
  readonly mapping: string | undefined;
  readonly options: PlaceOptions;
  /** Undefined: nothing is kept. */
  readonly ledger: LedgerSettings | undefined;
  write(line: string): Promise<void>;
}

/**
 * Shows everything that places hold about people, found as by a purge: one JSON object a row. Each id gets a line
 * `access` in the ledger before anything is shown. Throws UserError.
 */
export async function showPeople(request: PersonOptions): Promise<{ readonly ids: number; readonly rows: number }> {
  const { places, column, hashKey, options, write } = request;
  const { logger, clock, signal } = options;
  const list = new DeletionList();
  for await (const row of request.rows) list.add(row);
  const listed = list.ids();
  const refused = refusedSentence(list.counts);
  if (refused !== undefined && listed.length === 0) throw configError(`Nobody was looked for. ${refused}`);
  for (const warning of [refused ?? [], list.warnings()].flat()) logger.warn('person.list', warning);
  const mapping = request.mapping === undefined ? undefined : await readMapping(request.mapping, listed);
  const query = { ids: listed.map(({ id }) => id), column, mapping, hashKey };
  for (const { target, path } of places) {
    const { warnings } = await (await target.people()).find(path, query, options);
    for (const warning of warnings) logger.warn('person.missed', warning);
  }
  if (request.ledger !== undefined) {
    const ledger = await Ledger.open(request.ledger, { clock, isPlan: false });
    const names = places.map(placeName);
    await ledger.begin(0, names);
    await ledger.writeAll(listed.map(({ id }) => ({ kind: 'access', id: ledger.key.idHash(id), places: names })));
  }
  let rows = 0;
  for (const place of places) {
    const people = await place.target.people();
    const name = JSON.stringify(placeName(place));
    for await (const row of people.rows(place.path, query, options)) {
      signal?.throwIfAborted();
      await write(`{"place":${name},"table":"events","row":${row}}`);
      rows++;
    }
  }
  return { ids: listed.length, rows };
}
