import { DAY_MS } from '../../base/durations.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { endsClosed, type LedgerFile, ledgerFiles, openLineOf, readSoundFile } from './file.ts';
import type { LedgerKey } from './key.ts';
import type { Counts, Line } from './line.ts';

/** The service whose profiles a run deletes: only its own unfinished run is ever resumed. */
export type ServiceName = Pick<DestinationConfig, 'baseUrl' | 'serviceId'>;

export interface UnfinishedRuns {
  /** The run to resume: of the same list, begun less than 24 hours ago, and without its end or with undecided ids. */
  readonly resumes?: string | undefined;
  /** The list of that run, if the given one is the rest of it. */
  readonly wholeList?: string | undefined;
  /**
   * Decisions that this run, and the runs that it resumed, have verifiably recorded, by keyed hash of the id; these ids
   * are not requested again.
   */
  readonly decisions: ReadonlyMap<string, 'done' | 'rejected'>;
  /** The places that these runs were to purge and did not: with the counts that they found there, if they did. */
  readonly purging: ReadonlyMap<string, Counts>;
  /** A sentence that names the runs that are not resumed, with their dates. */
  readonly notice?: string | undefined;
}

export const NO_UNFINISHED_RUNS: UnfinishedRuns = { decisions: new Map(), purging: new Map() };

/** Maximum age of an unfinished run that is resumed: later, its deleted profiles may have been created again. */
const RESUMABLE_MS = DAY_MS;
const MAX_NAMED = 3;

interface UnfinishedQuery {
  readonly folder: string;
  readonly key: LedgerKey;
  readonly service: ServiceName;
  /** Keyed hash of the list that is about to be deleted. */
  readonly list: string;
  /** The run of which this list may be the rest. */
  readonly rest: RestQuery | undefined;
  readonly now: number;
}

/**
 * A list that is read from a place which is purged gives only the rest of its people once some were removed there. The
 * run that was confirmed for all of them goes on with the rest.
 */
export interface RestQuery {
  /** Keyed hash of what was confirmed. */
  readonly consent: string;
  /** Keyed hashes of the ids that the list has now. */
  readonly ids: readonly string[];
  /** Names of the places that it is read from. */
  readonly places: readonly string[];
}

type OpenLine = Partial<Line<'open'>>;
type Run = LedgerFile & { readonly open: OpenLine };

/** Finds the unfinished runs of one service. The run to resume is verified; runs that are only named are not. */
export async function findUnfinishedRuns(query: UnfinishedQuery): Promise<UnfinishedRuns> {
  const runs = ledgerFiles(query.folder).flatMap((file): Run[] => {
    const open = openLineOf(file.path);
    return open !== undefined && isOfService(open, query.service) ? [{ ...file, open }] : [];
  });
  const resumed = new Set(runs.map(({ open }) => open.resumes));
  const { rest } = query;
  const found =
    (await resumableRun(runs, resumed, query)) ?? (rest && (await resumableRun(runs, resumed, query, rest)));
  const chain = found?.chain ?? [];
  const others = runs.filter((run) => !chain.includes(run) && !resumed.has(run.run) && !endsClosed(run.path));
  const notice = others.length === 0 ? undefined : noticeOf(others);
  return found === undefined ? { ...NO_UNFINISHED_RUNS, notice } : { ...found.unfinished, notice };
}

/** True for a run of the list that is about to be deleted; with `rest`, of the list of which it may be the rest. */
const isOfList = (open: OpenLine, { list }: UnfinishedQuery, rest?: RestQuery): boolean =>
  rest === undefined ? open.list === list : open.consent === rest.consent;

/**
 * The latest run of a list, with those that it resumed, if it is to be resumed; undefined if not, or unless `rest` is
 * what a purge of theirs has left of the list.
 */
async function resumableRun(
  runs: readonly Run[],
  resumed: ReadonlySet<string | undefined>,
  query: UnfinishedQuery,
  rest?: RestQuery,
): Promise<{ readonly chain: readonly Run[]; readonly unfinished: UnfinishedRuns } | undefined> {
  const latest = runs.findLast(({ open }) => isOfList(open, query, rest));
  // A run is resumed only once: a copy of its file at the end of the chain must not make it the latest again.
  if (latest === undefined || resumed.has(latest.run) || !isRecent(latest.open, query)) return undefined;
  const end = await endOf(latest, query.key);
  if (end === 'done') return undefined;
  const chain = chainOf(latest, runs);
  const { outcomes, purging, isRest } = await outcomesOf(chain, query, rest);
  if (rest !== undefined && !isRest) return undefined;
  // If the run ended with undecided ids, only those are requested again. Of any other run only the deleted ids count:
  // who was rejected is asked for again.
  const isKnown = (entry: readonly [string, Outcome]): entry is [string, 'done' | 'rejected'] =>
    entry[1] === 'done' || (entry[1] === 'rejected' && end === 'undecided');
  const unfinished = {
    resumes: latest.run,
    wholeList: rest === undefined ? undefined : latest.open.list,
    decisions: new Map([...outcomes].filter(isKnown)),
    purging,
  };
  return { chain, unfinished };
}

export const isOfService = (open: OpenLine, { baseUrl, serviceId }: ServiceName): boolean =>
  open.base_url === baseUrl && open.service_id === serviceId;

/**
 * True for a run that began less than a day before now, or after now: the clock may have been set back since, by less
 * than a day.
 */
const isRecent = ({ at }: OpenLine, { now }: UnfinishedQuery): boolean =>
  Math.abs(now - Date.parse(at ?? '')) < RESUMABLE_MS;

/** The end of a run: complete, with undecided ids, or missing. */
async function endOf(run: Run, key: LedgerKey): Promise<'done' | 'undecided' | 'open'> {
  let undecided = 0;
  const { isClosed } = await readSoundFile(run, key, (line) => {
    if (line.kind === 'close') undecided = line.counts.undecided ?? 0;
  });
  if (!isClosed) return 'open';
  return undecided > 0 ? 'undecided' : 'done';
}

/** The run and, before it, the chain of runs that it resumed: oldest first. */
function chainOf(latest: Run, runs: readonly Run[]): Run[] {
  const chain: Run[] = [];
  for (let at: Run | undefined = latest; at !== undefined && !chain.includes(at); ) {
    chain.unshift(at);
    const before: string | undefined = at.open.resumes;
    at = runs.find(({ run }) => run === before);
  }
  return chain;
}

/** The last outcome of an id; `purge_only` where none was requested. */
type Outcome = 'done' | 'rejected' | 'undecided' | 'purge_only';

/**
 * The outcomes of these runs by keyed hash of the id, and the removals that they announced and did not report as done.
 * `isRest`: `rest` is what one of these removals has left of the list.
 */
async function outcomesOf(chain: readonly Run[], query: UnfinishedQuery, rest?: RestQuery) {
  const outcomes = new Map<string, Outcome>();
  const purging = new Map<string, Counts>();
  let isRest = false;
  for (const run of chain) {
    // Each run is classified by its verified first line.
    let isTrusted = false;
    await readSoundFile(run, query.key, (line) => {
      if (line.kind === 'open') {
        const isOfQuery = isOfService(line, query.service) && isOfList(line, query, rest) && isRecent(line, query);
        isTrusted = line.run === run.run && isOfQuery;
        for (const place of isTrusted ? (line.places ?? []) : []) {
          if (!purging.has(place)) purging.set(place, {});
        }
        return;
      }
      if (!isTrusted) return;
      if (line.kind === 'purge_only') outcomes.set(line.id, 'purge_only');
      else if (line.kind === 'after') {
        if (line.outcome === 'done' || line.outcome === 'rejected') outcomes.set(line.id, line.outcome);
        else if (outcomes.get(line.id) !== 'done') outcomes.set(line.id, 'undecided');
      } else if (line.kind === 'purging') {
        purging.set(line.target, line.counts);
        isRest ||= rest?.places.includes(line.target) === true && isLeftOf(outcomes, rest.ids);
      } else if (line.kind === 'purge' && line.outcome === 'done') purging.delete(line.target);
    });
  }
  return { outcomes, purging, isRest };
}

/**
 * True if a list has the `ids` that it has after a purge which began with these outcomes. It may lack rejected people,
 * whose rows go where a purged person shares them. Where it has people who were purged, or lacks undecided ones, it has
 * changed for another reason, such as newer rows: then those it lacks are perhaps still to be deleted, or to be purged.
 */
function isLeftOf(outcomes: ReadonlyMap<string, Outcome>, ids: readonly string[]): boolean {
  const present = new Set(ids);
  const isLeft = (outcome: Outcome | undefined) => outcome === 'rejected' || outcome === 'undecided';
  const isAllThere = [...outcomes].every(([id, outcome]) => outcome !== 'undecided' || present.has(id));
  return isAllThere && ids.every((id) => isLeft(outcomes.get(id)));
}

function noticeOf(runs: readonly Run[]): string {
  const named = runs.slice(-MAX_NAMED).map(({ run, open }) => `${run} of ${dateOf(open)}`);
  const more = runs.length > named.length ? `, and ${runs.length - named.length} before them` : '';
  return (
    'Runs that never ended are not resumed, because they had another list or began more than 24 hours ago: ' +
    `${named.join(', ')}${more}. What they left open is deleted only where this list names it.`
  );
}

/** The date of a first line, which is not verified, so that `at` may hold anything. */
function dateOf({ at }: OpenLine): string {
  const ms = Date.parse(at ?? '');
  return Number.isNaN(ms) ? 'an unknown date' : new Date(ms).toISOString();
}
