import { configError, EXIT, type ExitCode } from '../../base/errors.ts';
import { type IdList, type ListCounts, type ListedId, refusedParagraph } from '../list/id-list.ts';
import { verifyLedger } from './chain.ts';
import { ID_STATES, type IdHistory } from './id-history.ts';
import type { LedgerSettings } from './ledger.ts';
import { type LedgerKeys, ledgerPathIn, locateLedger } from './ledger-file.ts';
import { LedgerHistory } from './ledger-history.ts';

/**
 * What the ledger says of the ids of a list at one service (schemas/proof.json). It says when the service confirmed or
 * rejected their deletion, and how many rows left which place. A broken ledger proves nothing. `expectedHead`: the code
 * of a line that must be there. Throws UserError for a list without an id.
 */
export async function proveErasure(list: IdList, settings: LedgerSettings, expectedHead?: string) {
  const listedIds = list.listedIds();
  if (listedIds.length === 0)
    throw configError(`Nothing is proved. ${refusedParagraph(list.counts) ?? 'The list is empty.'}`);
  const { baseUrl: base_url, serviceId: service_id, ledgerDir, ledgerKey } = settings;
  if (ledgerDir === undefined)
    throw configError('ledger_dir is missing: set erasure.ledger_dir or DFINERY_LEDGER_DIR.');
  const ledger = locateLedger(ledgerPathIn(ledgerDir), ledgerKey);
  const ids = listedIds.map(({ id }) => id);
  const history = new LedgerHistory(settings, ledger.keys, ids);
  const { ok, problems, head } = await verifyLedger(ledger, expectedHead, (line) => history.add(line));
  const provedIds = (ok ? listedIds : []).map((listedId) => provedIdOf(listedId, history, ledger.keys));
  return {
    v: 1,
    kind: 'proof',
    base_url,
    service_id,
    other_addresses: [...history.otherAddresses],
    head,
    summary: summaryOf(list.counts, provedIds, history),
    ids: provedIds,
    problems,
  } as const;
}

export type Proof = Awaited<ReturnType<typeof proveErasure>>;

export type ProvedId = ReturnType<typeof provedIdOf>;

function provedIdOf({ id, rowNumber }: ListedId, ledgerHistory: LedgerHistory, { idKey }: LedgerKeys) {
  const idHistory = ledgerHistory.of(id);
  const { state, openRequest, answers, purges, shown } = idHistory;
  return {
    /** HMAC of the id, as in the lines. */
    id: idKey.hashOf(id),
    row: rowNumber,
    state,
    asked_at: openRequest?.sentAt ?? null,
    answers,
    removals: purges.map(({ removedAt: removed_at, hasFound: _, ...purge }) => ({ ...purge, removed_at })),
    unpurged: unpurgedPlaces(idHistory),
    shown,
  };
}

/**
 * The places that runs of an id named, and where no purge of it has ended since. Those with a purge that was not
 * finished are left out: that is told of the place. `since`: when the last run began that named the place. `left_out`: a
 * later run purged the id in other places alone.
 */
function unpurgedPlaces({ runs, purges }: IdHistory) {
  const runsWithPlaces = [...runs].filter(({ places }) => places.length > 0);
  const lastRunByPlace = new Map(runsWithPlaces.flatMap((run) => run.places.map((place) => [place, run] as const)));
  return [...lastRunByPlace].flatMap(([place, run]) => {
    const since = run.at;
    if (purges.some((purge) => purge.place === place && (purge.removedAt === null || purge.removedAt >= since)))
      return [];
    return { place, since, left_out: run !== runsWithPlaces.at(-1) };
  });
}

/** How many ids are in which state; who asked for their deletion and why; when it took place; what left the places. */
function summaryOf({ received, refused, refused_rows }: ListCounts, ids: readonly ProvedId[], history: LedgerHistory) {
  const stateCounts = ID_STATES.map((state) => [state, ids.filter((id) => id.state === state).length]);
  const runs = ids.length === 0 ? [] : history.runsOfIds;
  const valuesOf = (key: 'requested_by' | 'reason') => [...new Set(runs.flatMap((run) => run[key] ?? []))];
  const removals = ids.flatMap((id) => id.removals);
  const answers = ids.flatMap((id) => id.answers);
  const times = [...answers.map(({ at }) => at), ...removals.map(({ at, removed_at }) => removed_at ?? at)];
  const places = new Set([...removals, ...ids.flatMap((id) => id.unpurged)].map(({ place }) => place));
  return {
    received,
    refused,
    refused_rows,
    ids: ids.length,
    ...(Object.fromEntries(stateCounts) as Record<(typeof ID_STATES)[number], number>),
    since: runs[0]?.at ?? null,
    until: times.sort().at(-1) ?? null,
    requested_by: valuesOf('requested_by'),
    reasons: valuesOf('reason'),
    places: Array.from(places, (place) => placeSummary(place, ids, history)),
  };
}

/**
 * How many rows left a place, and why people may still be there:
 *
 *   unfinished       a purge of an id has no end, or the last run about it did not come to the place
 *   left_out_since   the last run about an id did not name the place, which an earlier one had not purged
 *   unreached        the last purge of an id could not read or remove something
 *   stays            there are tables or files of others
 *   new_list_at      a later purge began with a new or an older suppression list, and none has found rows of an id since
 */
function placeSummary(place: string, ids: readonly ProvedId[], history: LedgerHistory) {
  const isOfPlace = (entry: { readonly place: string }) => entry.place === place;
  const removals = ids.flatMap((id) => id.removals.filter(isOfPlace));
  const unpurged = ids.flatMap((id) => id.unpurged.filter(isOfPlace));
  const leftOutTimes = unpurged.flatMap(({ left_out, since }) => (left_out ? since : []));
  const lastErasures = ids.flatMap((id) => id.removals.findLast((purge) => isOfPlace(purge) && purge.rows > 0) ?? []);
  return {
    place,
    /** Those of a person with two of these ids count for each: the ledger has a line for each id. */
    rows: removals.reduce((sum, { rows, removed_at }) => sum + (removed_at === null ? 0 : rows), 0),
    unfinished: removals.some(({ removed_at }) => removed_at === null) || unpurged.some(({ left_out }) => !left_out),
    left_out_since: leftOutTimes.sort().at(-1) ?? null,
    stays: history.lastPurgeByPlace.get(place)?.stays ?? [],
    unreached: ids.some((id) => id.removals.findLast(isOfPlace)?.unreached),
    new_list_at: lastErasures.some(({ at }) => at < history.newListAt) ? history.newListAt : null,
  };
}

/** 1: the ledger is broken, or says nothing of an id. 3: an id is open, or a purge is not whole. */
export function exitOfProof({ problems, summary }: Proof): ExitCode {
  if (problems.length > 0 || summary.unknown > 0) return EXIT.failed;
  const isUnfinished = summary.open > 0 || summary.places.some(({ unfinished, unreached }) => unfinished || unreached);
  return isUnfinished ? EXIT.later : EXIT.done;
}
