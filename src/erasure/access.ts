import { configError } from '../base/errors.ts';
import { sha256 } from '../base/json.ts';
import { DEFAULT_MAX_ID_LENGTH, type DestinationConfig } from '../config/destination.ts';
import type { PlaceOptions } from '../targets/contract.ts';
import { DeletionList } from './input/deletion-list.ts';
import { readMapping } from './input/mapping.ts';
import { LedgerStore } from './ledger/ledger.ts';
import { placeName, type StoredPlace } from './place-purge.ts';
import type { PurgeRequest } from './purge.ts';
import { refusedSentence } from './report.ts';

export interface AccessOptions extends Pick<PurgeRequest, 'places' | 'column' | 'mapping' | 'hashKey' | 'options'> {
  readonly ids: AsyncIterable<unknown>;
  /** The configuration that names the ledger; undefined if nothing is recorded. */
  readonly config: DestinationConfig | undefined;
  write(line: string): Promise<void>;
}

/**
 * Shows everything that places hold about people, found as by a purge: one JSON object a row. With a ledger's
 * folder each id is recorded there before anything is shown. Throws UserError.
 */
export async function accessPeople(request: AccessOptions): Promise<{ readonly ids: number; readonly rows: number }> {
  const { places, column, hashKey, options, config, write } = request;
  const list = new DeletionList();
  for await (const id of request.ids) list.addRow(0, id, config?.maxIdLength ?? DEFAULT_MAX_ID_LENGTH);
  const listed = list.ids();
  const refused = refusedSentence(list.counts, 'not looked for');
  if (refused !== undefined && listed.length === 0) throw configError(`Nobody was looked for: ${refused}.`);
  if (refused !== undefined) options.logger.warn('person.refused', `${refused}.`, { ...list.counts.refused });
  const mapping = request.mapping === undefined ? undefined : await readMapping(request.mapping, listed);
  const query = { ids: listed.map(({ id }) => id), column, mapping, hashKey };
  for (const { target, path } of places) {
    const { warnings } = await (await target.people()).find(path, query, options);
    for (const warning of warnings) options.logger.warn('person.missed', warning);
  }
  if (config?.ledgerDir !== undefined && listed.length > 0) await record(list, places, config, options);
  let rows = 0;
  for (const place of places) {
    const people = await place.target.people();
    const name = JSON.stringify(placeName(place));
    for await (const row of people.rows(place.path, query, options)) {
      options.signal?.throwIfAborted();
      await write(`{"place":${name},"table":"events","row":${row}}`);
      rows++;
    }
  }
  return { ids: listed.length, rows };
}

/**
 * Records the access as a run of its own in the ledger; its list hash is another than that of a deletion of these ids.
 */
async function record(
  list: DeletionList,
  places: readonly StoredPlace[],
  config: DestinationConfig,
  { clock }: PlaceOptions,
): Promise<void> {
  const ledgers = await LedgerStore.open({ config, isReal: true, clock, lines: undefined });
  try {
    const name = ledgers.key.listHash(sha256(['dfinery-elt person v1', list.digest]));
    const ledger = await ledgers.start({ list: name, ids: 0 });
    const [ids, names] = [list.ids(), places.map(placeName)];
    for (const { id } of ids) ledger.add({ kind: 'access', id: ledgers.key.idHash(id), places: names });
    await ledger.write({ kind: 'close', counts: { ids: ids.length } });
  } finally {
    await ledgers.close();
  }
}
