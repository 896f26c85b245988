import type { DecidingAnswer, IdHistory } from './ledger/id-history.ts';
import type { LedgerHistory } from './ledger/ledger-history.ts';
import type { ListedId } from './list/id-list.ts';
import type { SuppressionList } from './suppression-list.ts';

/**
 * An id of a list, and what the erasure does with it. This is decided once, in the plan:
 *
 * | what the ledger says of it           | without requests | its row comes again | a later row, or `--again` |
 * | ------------------------------------ | ---------------- | ------------------- | ------------------------- |
 * | no final answer                      | seek             | seek, request       | seek, request             |
 * | a final answer                       | seek             | seek                | seek, request again       |
 * | a final answer, its people have left | seek             | nothing             | seek, request again       |
 */
export type PlannedId = ListedId &
  PlannedRequest & {
    /** False if its people have left all places, and are kept out. Whom it names now has come back since. */
    readonly isSought: boolean;
    /** True if rows of it were removed before: then it is not missed if no way finds it. */
    readonly isErased: boolean;
  };

/** `answer`: what the service has answered before, be it final or not. */
type PlannedRequest =
  /** No request is sent: the answer of before counts. */
  | { readonly request: 'answered'; readonly answer: DecidingAnswer }
  /**
   * `none`: the erasure sends no requests. `due`: one is sent, since no answer is final. `again`: one is sent although
   * an answer is final, since the person may have come back.
   */
  | { readonly request: 'none' | 'due' | 'again'; readonly answer: DecidingAnswer | undefined };

export type AnsweredId = PlannedId & { readonly request: 'answered' };

interface PlanOptions {
  /** Undefined: no request is sent. */
  readonly requestSettings: { readonly again: boolean } | undefined;
  /** Undefined: no place is purged. */
  readonly purgeSettings:
    | { readonly places: readonly { readonly name: string }[]; readonly suppressionList: SuppressionList }
    | undefined;
}

/** Decides what is done with each id. Throws UserError for a suppression list that cannot be read. */
export function planIds(
  listedIds: readonly ListedId[],
  history: LedgerHistory,
  { requestSettings, purgeSettings }: PlanOptions,
): PlannedId[] {
  const placeNames = purgeSettings?.places.map(({ name }) => name) ?? [];
  // Those who have left may not be on an older list.
  const isOlderList =
    purgeSettings !== undefined && purgeSettings.suppressionList.readLength() < history.suppressionLength;
  return listedIds.map((listedId) => {
    const idHistory = history.of(listedId.id);
    const plannedRequest = planRequest(listedId, idHistory, requestSettings);
    const { request } = plannedRequest;
    const erasedFrom = idHistory.erasedFrom(placeNames, history.newListAt);
    return {
      ...listedId,
      ...plannedRequest,
      isSought: request !== 'answered' || erasedFrom !== 'all' || isOlderList,
      isErased: request !== 'again' && erasedFrom !== 'none',
    };
  });
}

function planRequest(
  { requestedAt }: ListedId,
  idHistory: IdHistory,
  requestSettings: PlanOptions['requestSettings'],
): PlannedRequest {
  const { standingAnswer, isFinal } = idHistory;
  if (requestSettings === undefined) return { request: 'none', answer: standingAnswer };
  const answer = idHistory.answerTo(requestedAt, requestSettings.again);
  if (answer !== undefined) return { request: 'answered', answer };
  return { request: isFinal ? 'again' : 'due', answer: standingAnswer };
}
