import { type LedgerFile, ledgerFiles } from './files.ts';
import type { LedgerKey } from './key.ts';
import type { OpenLine } from './line.ts';
import { endsClosed, openLineOf, readSoundFile } from './read.ts';
import type { ServiceName, UnfinishedRuns } from './store.ts';

/** Maximum age of an unfinished run that is resumed: later, its deleted profiles may have been created again. */
const RESUMABLE_MS = 24 * 60 * 60_000;
/** Runs that are named individually in a message. */
const MOST_NAMED = 3;

export interface UnfinishedQuery {
  readonly folder: string;
  readonly key: LedgerKey;
  readonly service: ServiceName;
  /** Keyed hash of the list that is about to be deleted. */
  readonly list: string;
  readonly now: number;
}

type Run = LedgerFile & { readonly open: Partial<OpenLine> };

/** Finds the unfinished runs of one service. The run to resume is verified; runs that are only named are not. */
export async function findUnfinishedRuns(query: UnfinishedQuery): Promise<UnfinishedRuns> {
  const runs = ledgerFiles(query.folder).flatMap((file) => runOf(file, query.service));
  const latest = runs.findLast(({ open }) => open.list === query.list);
  const resumed = new Set(runs.map(({ open }) => open.resumes));
  // A run is resumed only once: a copy of its file at the end of the chain must not make it the latest again.
  const isOpen = latest !== undefined && !resumed.has(latest.run) && isResumable(latest.open, query);
  const chain = isOpen && !(await readSoundFile(latest, query.key)).isClosed ? chainOf(latest, runs) : [];
  const left = runs.filter((run) => !chain.includes(run) && !resumed.has(run.run) && !endsClosed(run.path));
  return {
    resumes: chain[0]?.run,
    notice: left.length === 0 ? undefined : noticeOf(left),
    async eachDone(listener) {
      for (const run of chain) await eachDoneOf(run, query, listener);
    },
  };
}

function runOf(file: LedgerFile, { baseUrl, serviceId }: ServiceName): Run[] {
  const open = openLineOf(file.path);
  return open?.base_url === baseUrl && open.service_id === serviceId ? [{ ...file, open }] : [];
}

/** Absolute difference: after the clock was set back, a run that seems to begin a day ahead is not resumed either. */
const isResumable = (open: Partial<OpenLine>, { list, now }: UnfinishedQuery): boolean =>
  open.list === list && Math.abs(now - Date.parse(open.at ?? '')) < RESUMABLE_MS;

/** The run, the one that it resumed, and so on, latest first. */
function chainOf(latest: Run, runs: readonly Run[]): Run[] {
  const chain: Run[] = [];
  for (let at: Run | undefined = latest; at !== undefined && !chain.includes(at); ) {
    chain.push(at);
    const before: string | undefined = at.open.resumes;
    at = runs.find(({ run }) => run === before);
  }
  return chain;
}

/** Classifies each run by its verified first line. */
async function eachDoneOf(run: Run, query: UnfinishedQuery, listener: (idHash: Buffer) => void): Promise<void> {
  let isTrusted = false;
  await readSoundFile(run, query.key, (line) => {
    if (line.kind === 'open') {
      isTrusted = line.run === run.run && runOf(run, query.service).length > 0 && isResumable(line, query);
    } else if (isTrusted && line.kind === 'after' && line.outcome === 'done') listener(Buffer.from(line.id, 'hex'));
  });
}

function noticeOf(left: readonly Run[]): string {
  const named = left.slice(-MOST_NAMED).map(({ run, open }) => `${run} of ${dateOf(open)}`);
  const more = left.length > named.length ? `, and ${left.length - named.length} before them` : '';
  return `Runs that never ended are not resumed, because they had another list or began more than 24 hours ago: ${named.join(', ')}${more}. What they left open is deleted only where this list names it.`;
}

/** An unchecked line may hold anything. */
function dateOf({ at }: Partial<OpenLine>): string {
  const ms = Date.parse(at ?? '');
  return Number.isNaN(ms) ? 'an unknown date' : new Date(ms).toISOString();
}
