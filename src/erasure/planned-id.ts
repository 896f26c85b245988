import type { DecidingAnswer } from './ledger/id-history.ts';
import type { LedgerHistory } from './ledger/ledger-history.ts';
import type { Decision } from './ledger/lines.ts';
import type { ListedId } from './list/id-list.ts';
import type { NamedPlace } from './listed-people.ts';
import type { RequestSettings } from './requests.ts';
import type { SuppressionList } from './suppression-list.ts';

/**
 * An id of a list, and what the erasure does with it. This is decided once, in the plan:
 *
 * | what the ledger says of it           | without requests | its row comes again | a later row, or `--again` |
 * | ------------------------------------ | ---------------- | ------------------- | ------------------------- |
 * | no final answer                      | seek             | seek, request       | seek, request             |
 * | a final answer                       | seek             | seek                | seek, request             |
 * | a final answer, its people have left | seek             | nothing             | seek, request             |
 */
export interface PlannedId extends ListedId {
  /**
   * `due`: one is sent. `done`, `rejected`: none is sent, since this final answer counts. `none`: the erasure sends no
   * requests.
   */
  readonly request: 'due' | Decision | 'none';
  /** What the service has answered before, be it final or not. */
  readonly answer: DecidingAnswer | undefined;
  /** False if its people have left all places, and are kept out. Whom it names now has come back since. */
  readonly isSought: boolean;
  /** True if no way need find it: its people or rows left a place before, and it is not requested again. */
  readonly mayBeAbsent: boolean;
}

/** Decides what is done with each id. Throws UserError for a suppression list that cannot be read. */
export function planIds(
  listedIds: readonly ListedId[],
  history: LedgerHistory,
  requestSettings: RequestSettings | undefined,
  purge: { readonly places: readonly NamedPlace[]; readonly suppressionList: SuppressionList } | undefined,
): PlannedId[] {
  const placeNames = purge?.places.map(({ name }) => name) ?? [];
  // An older list may lack those who have left.
  const isOlderList = purge !== undefined && purge.suppressionList.readLength() < history.suppressionLength;
  return listedIds.map((listedId) => {
    const idHistory = history.of(listedId.id);
    const finalAnswer = requestSettings?.again ? undefined : idHistory.answerTo(listedId.requestedAt);
    const request = requestSettings === undefined ? 'none' : (finalAnswer?.outcome ?? 'due');
    // The person may have come back since.
    const isRequestedAgain = request === 'due' && idHistory.isFinal;
    const erasedFrom = idHistory.erasedFrom(placeNames, history.newListAt);
    const hasLeft = erasedFrom === 'all' && !isOlderList;
    return {
      ...listedId,
      request,
      answer: idHistory.standingAnswer,
      isSought: !(hasLeft && (request === 'done' || request === 'rejected')),
      mayBeAbsent: erasedFrom !== 'none' && !isRequestedAgain,
    };
  });
}
