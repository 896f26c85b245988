import { formatDays } from '../base/days.ts';
import { configError, EXIT, type UserError } from '../base/errors.ts';
import { sha256OfJson } from '../base/json.ts';
import { formatCount, withSeparators } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { Ledger, type LedgerSettings } from './ledger/ledger.ts';
import type { Decision } from './ledger/lines.ts';
import { otherAddressesSentence } from './ledger/proof-text.ts';
import { type IdList, refusedParagraph } from './list/id-list.ts';
import { type PlannedId, planIds } from './planned-id.ts';
import { type PurgePlan, type PurgeSettings, planPurge, purgeGuardProblem } from './purge-plan.ts';
import type { OnDecided, RequestSettings } from './requests.ts';

/** Whom to erase, where and how. */
export interface ErasureOptions {
  readonly settings: LedgerSettings &
    Pick<DestinationConfig, 'maxDeletionsPerSync' | 'onRejected' | 'requestedAtField'>;
  readonly runtime: Omit<Runtime, 'env'>;
  readonly list: IdList;
  /** `none`: a plan, which changes nothing. `configured`: the configuration is the consent, as on a platform. */
  readonly consent: 'none' | 'configured' | { readonly confirm: string };
  /** Undefined: no request is sent. */
  readonly requestSettings: RequestSettings | undefined;
  /** Undefined: no place is purged. */
  readonly purgeSettings: PurgeSettings | undefined;
  /** Called once for each id that is decided, or was deleted before. */
  readonly onDecided?: OnDecided;
  /** True on a platform: its users have no options of the command line, and no places. */
  readonly isOnPlatform: boolean;
}

/** Everything that is known before anything is sent or removed. */
export interface ErasurePlan {
  readonly options: ErasureOptions;
  readonly ledger: Ledger;
  /** Undefined: no place is purged. */
  readonly purgePlan: PurgePlan | undefined;
  readonly plannedIds: readonly PlannedId[];
  /** Those of them that are requested. */
  readonly idsToRequest: readonly PlannedId[];
  /** How the erasure breaks a guard, as a sentence. */
  readonly guardProblem: string | undefined;
  /** What an officer repeats as the consent. */
  readonly hash: string;
  /** Those of `purgePlan` are not repeated. */
  readonly warnings: readonly string[];
}

/**
 * Plans an erasure. Without a consent it changes nothing; with one it makes the folder and the key of the ledger. Throws
 * UserError for what makes the execution impossible.
 */
export async function planErasure(options: ErasureOptions): Promise<ErasurePlan> {
  const { settings, runtime, list, consent, requestSettings } = options;
  const listedIds = list.listedIds();
  const ids = listedIds.map(({ id }) => id);

  // 1. The ledger, and the suppression list, where a purge puts everybody first. For nobody no place is looked into.
  const ledger = await Ledger.open(settings, { clock: runtime.clock, isPlan: consent === 'none', ids });
  const hasPeople = ids.length > 0 || options.purgeSettings?.isSuppressedOnly;
  const purgeSettings = hasPeople ? options.purgeSettings : undefined;
  await purgeSettings?.suppressionList.requireWritable();

  // 2. What is done with each id.
  const plannedIds = planIds(listedIds, ledger.history, requestSettings, purgeSettings);
  const idsToRequest = plannedIds.filter(({ request }) => request === 'due');

  // 3. Whom the places hold.
  const purgePlan = purgeSettings && (await planPurge(plannedIds, purgeSettings, ledger));

  // 4. The guards, and what an officer is to know and to confirm.
  const guardProblem =
    requestGuardProblem(idsToRequest, settings.maxDeletionsPerSync) ?? (purgePlan && purgeGuardProblem(purgePlan));
  const plan = { options, ledger, purgePlan, plannedIds, idsToRequest };
  return { ...plan, guardProblem, hash: consentHash(options, purgePlan), warnings: warningsOf(plan) };
}

function warningsOf({ options, ledger, plannedIds }: Pick<ErasurePlan, 'options' | 'ledger' | 'plannedIds'>) {
  const { settings, list, purgeSettings, isOnPlatform } = options;
  const idsAnswered = (answer: Decision) => plannedIds.filter(({ request }) => request === answer);
  return [
    purgeSettings === undefined && !isOnPlatform
      ? 'The erasure has no places: rows that were loaded stay where they are.'
      : [],
    list.counts.received === 0 && !purgeSettings?.isSuppressedOnly ? 'The list is empty: nobody is deleted.' : [],
    // Else the failure of the plan says it.
    list.wrongField === undefined ? (refusedParagraph(list.counts) ?? []) : [],
    list.warnings(),
    ledger.isKept
      ? []
      : 'There is no ledger_dir: nothing is remembered or proved, and each run requests every ID again.',
    answeredSentence(idsAnswered('done'), 'deleted at', options),
    answeredSentence(idsAnswered('rejected'), 'rejected by', options),
    otherAddressesSentence(settings.serviceId, [...ledger.history.otherAddresses]) ?? [],
  ].flat();
}

/** How many ids were answered before, when, and how to request them again. */
function answeredSentence(ids: readonly PlannedId[], decidedBy: string, options: ErasureOptions) {
  if (ids.length === 0) return [];
  const { requestedAtField: field } = options.settings;
  const againText = options.isOnPlatform ? '' : 'give forget --again, or ';
  const timeText = field === undefined ? 'set requested_at_field' : `give a later time in the field ${field}`;
  const days = new Set(ids.flatMap(({ answer }) => answer?.at.slice(0, 10) ?? []));
  return (
    `${formatCount(ids.length, 'ID was', 'IDs were')} ${decidedBy} the service before (${formatDays([...days].sort())}), and will not be requested ` +
    `again. To request them, ${againText}${timeText}.`
  );
}

/** How the requests break their guard, as a sentence; an id that the service rejected before is no danger. */
function requestGuardProblem(idsToRequest: readonly PlannedId[], limit: number) {
  const profileCount = idsToRequest.filter(({ answer }) => answer?.outcome !== 'rejected').length;
  if (profileCount <= limit) return undefined;
  return (
    `${formatCount(profileCount, 'profile')} would be deleted, more than max_deletions_per_sync allows (${withSeparators(limit)}). If that is ` +
    `meant, set max_deletions_per_sync to ${profileCount} or more.`
  );
}

/** The hash of what an officer confirms, without what ledger or service know: it stays valid for a second run. */
function consentHash(options: ErasureOptions, purgePlan: PurgePlan | undefined): string {
  const { settings, list, requestSettings, purgeSettings } = options;
  const mappedIds = [...(purgePlan?.listedPeople.unifiedIdsInMapping ?? [])].map(([id, unifiedIds]) =>
    JSON.stringify([id, [...unifiedIds].sort()]),
  );
  return sha256OfJson({
    service: [settings.baseUrl, settings.serviceId],
    maxDeletions: settings.maxDeletionsPerSync,
    list: purgeSettings?.isSuppressedOnly ? 'suppressed' : list.digest,
    requests: requestSettings && { again: requestSettings.again },
    purge: purgeSettings && {
      places: purgeSettings.places.map(({ name }) => name).sort(),
      profiles: purgeSettings.profileService !== undefined,
      byColumn: purgeSettings.byColumn,
      mapping: mappedIds.sort(),
      newList: purgeSettings.beginsNewList,
      maxPeople: purgeSettings.maxPeople,
      allowsShared: purgeSettings.allowsShared,
    },
  });
}

/** The failure of an erasure that breaks a guard, or of a list without a usable row. */
export function planFailure({ options, guardProblem }: ErasurePlan): UserError | undefined {
  const { list, settings } = options;
  if (list.wrongField !== undefined) {
    const field = list.wrongField === 'id' ? 'ID field' : `field ${settings.requestedAtField}`;
    return configError(`Nothing was deleted. ${refusedParagraph(list.counts)} Is the ${field} the right one?`);
  }
  if (guardProblem === undefined) return undefined;
  return configError(`Nothing was deleted. ${guardProblem}`, { exitCode: EXIT.guard });
}
