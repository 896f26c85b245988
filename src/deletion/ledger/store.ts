import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configError, internalError, messageOf, transientError } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { LockFile } from '../../fs/lock.ts';
import { isTrustedOwner, makeFolders } from '../../fs/private-folder.ts';
import {
  createLedgerFile,
  endsClosed,
  fileName,
  isOpenToOthers,
  type LedgerFile,
  ledgerFiles,
  openLineOf,
  readSoundFile,
} from './file.ts';
import { keyInFolder, LedgerKey, storedKey, temporaryKey } from './key.ts';
import { Ledger, type LedgerOutput } from './ledger.ts';
import { Chain, GENESIS, type OpenLine } from './line.ts';

export interface StoreOptions {
  readonly config: DestinationConfig;
  /** False: nothing is written or locked. */
  readonly isReal: boolean;
  readonly clock: Clock;
  /** Takes the lines of a run without a folder. */
  readonly lines: LedgerOutput | undefined;
}

/** The service whose profiles a run deletes: only its own unfinished run is ever resumed. */
export type ServiceName = Pick<DestinationConfig, 'baseUrl' | 'serviceId'>;

/** The unfinished runs of a service, for a run with a given list. */
export interface UnfinishedRuns {
  /** The run to resume: of the same list, begun less than 24 hours ago, and without its end or with undecided ids. */
  readonly resumes: string | undefined;
  /** By hex of the keyed hash: what this run, and the runs it resumed, have verifiably decided and need not be asked again. */
  readonly decisions: ReadonlyMap<string, 'done' | 'rejected'>;
  /** By place: what they found there and were about to remove, without a line that says that they had. */
  readonly purging: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** A sentence that names the runs that are not resumed, with their dates. */
  readonly notice: string | undefined;
}

const NO_UNFINISHED_RUNS: UnfinishedRuns = {
  resumes: undefined,
  decisions: new Map(),
  purging: new Map(),
  notice: undefined,
};

/** Maximum age of an unfinished run that is resumed: later, its deleted profiles may have been created again. */
const RESUMABLE_MS = 24 * 60 * 60_000;
/** Runs that are named individually in a message. */
const MAX_NAMED = 3;

/** Where a run leaves its proof must be known before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configError(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}

/** The storage of a run's ledger: a folder, which a real run locks until `close`, or the log. */
export class LedgerStore {
  readonly key: LedgerKey;
  readonly #options: StoreOptions;
  /** Undefined: there is none, or none yet. */
  readonly #folder: string | undefined;
  readonly #lock: LockFile | undefined;
  readonly #head: string;

  private constructor(
    options: StoreOptions,
    key: LedgerKey,
    opened?: { folder: string; lock?: LockFile; head: string },
  ) {
    this.#options = options;
    this.key = key;
    this.#folder = opened?.folder;
    this.#lock = opened?.lock;
    this.#head = opened?.head ?? GENESIS;
  }

  /** A real run makes the folder (0700) and its key where they are missing. The last file that has a line is verified. */
  static async open(options: StoreOptions): Promise<LedgerStore> {
    const { isReal, clock, config } = options;
    const { ledgerDir: folder, ledgerKey } = config;
    if (isReal) requireLedger(config);
    if (folder === undefined || !(isReal || existsSync(folder))) {
      return new LedgerStore(options, ledgerKey === undefined ? temporaryKey() : new LedgerKey(ledgerKey));
    }
    if (isReal) makeFolder(folder);
    refuseForeignFolder(folder);
    let lock: LockFile | undefined;
    try {
      const what = `the ledger in ${folder}`;
      if (isReal) lock = await LockFile.take(join(folder, 'ledger.lock'), { what, clock, waitMs: 0 });
      const secret = ledgerKey ?? storedKey(folder);
      if (secret === undefined) refuseLostKey(folder);
      const key = secret ? new LedgerKey(secret) : isReal ? new LedgerKey(keyInFolder(folder)) : temporaryKey();
      return new LedgerStore(options, key, { folder, ...(lock && { lock }), head: await headOf(folder, key) });
    } catch (error) {
      lock?.release();
      throw ledgerError(error, folder);
    }
  }

  /** `list`: the keyed hash of the list, as it stands in the first line of a ledger. */
  async findUnfinished(list: string): Promise<UnfinishedRuns> {
    const { config, clock } = this.#options;
    if (this.#folder === undefined) return NO_UNFINISHED_RUNS;
    return findUnfinishedRuns({ folder: this.#folder, service: config, key: this.key, list, now: clock.now() });
  }

  /** Begins the ledger of a run: in a file of its own, which follows the one before it in the chain, or in the log. */
  async start(content: Pick<OpenLine, 'list' | 'resumes' | 'ids'>): Promise<Ledger> {
    const { config, clock } = this.#options;
    const run = randomBytes(8).toString('hex');
    const output = await this.#outputOf(run);
    const ledger = new Ledger(run, new Chain(this.key, this.#head), output, clock);
    try {
      await ledger.write({
        kind: 'open',
        base_url: config.baseUrl,
        service_id: config.serviceId,
        key_check: this.key.check,
        requested_by: config.requestedBy,
        reason: config.reason,
        ...content,
      });
    } catch (error) {
      await output.close();
      throw error;
    }
    return ledger;
  }

  close(): void {
    this.#lock?.release();
  }

  async #outputOf(run: string): Promise<LedgerOutput> {
    const [folder, lock] = [this.#folder, this.#lock];
    if (folder !== undefined && lock !== undefined) return lockedFile(folder, run, lock);
    const { isReal, lines } = this.#options;
    if (!isReal || lines === undefined) throw internalError('This run has no ledger.');
    return lines;
  }
}

/** A new file of the folder; it refuses to write once another run has taken the lock (while this process was suspended). */
async function lockedFile(folder: string, run: string, lock: LockFile): Promise<LedgerOutput> {
  const path = join(folder, fileName((ledgerFiles(folder).at(-1)?.number ?? 0) + 1, run));
  const file = await createLedgerFile(path, folder).catch((error: unknown) => {
    throw ledgerError(error, folder);
  });
  return {
    async write(lines) {
      if (!lock.isHeld()) {
        throw transientError(`Another run has taken over the ledger in ${folder}: this one was silent for long.`);
      }
      await file.write(lines);
    },
    close: () => file.close(),
  };
}

/** A system error of a ledger's folder as a UserError that names it; any other error unchanged. */
const ledgerError = (error: unknown, folder: string): unknown =>
  diskError(error, { what: `the ledger in ${folder}`, path: folder, consequence: 'nothing was sent' });

function makeFolder(folder: string): void {
  try {
    makeFolders(folder, 0o700);
  } catch (error) {
    throw configError(`The ledger's folder ${folder} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
}

/** Whoever owns the folder can take files of the ledger away or put others in their place (S40). */
function refuseForeignFolder(folder: string): void {
  const { uid, mode } = statSync(folder);
  if (!isTrustedOwner(uid)) {
    throw configError(
      `The ledger's folder ${folder} belongs to another user, who could exchange its files: set ledger_dir to a folder of this user, or run as its owner.`,
      { where: { file: folder } },
    );
  }
  if (!isOpenToOthers(mode)) return;
  throw configError(
    `Other users may write to the ledger's folder ${folder}, and so take away its files: set its mode to 0700.`,
    { where: { file: folder } },
  );
}

/** A key is made only for a new ledger: in an existing one it would hide that the old one is missing. */
function refuseLostKey(folder: string): void {
  if (ledgerFiles(folder).length === 0) return;
  throw configError(`The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key.`);
}

/** Code of the ledger's last line; a file without any line, left by a crash, is skipped. */
async function headOf(folder: string, key: LedgerKey): Promise<string> {
  for (const file of ledgerFiles(folder).reverse()) {
    const { head } = await readSoundFile(file, key);
    if (head !== undefined) return head;
  }
  return GENESIS;
}

interface UnfinishedQuery {
  readonly folder: string;
  readonly key: LedgerKey;
  readonly service: ServiceName;
  /** Keyed hash of the list that is about to be deleted. */
  readonly list: string;
  readonly now: number;
}

type Run = LedgerFile & { readonly open: Partial<OpenLine> };

/** Finds the unfinished runs of one service. The run to resume is verified; runs that are only named are not. */
async function findUnfinishedRuns(query: UnfinishedQuery): Promise<UnfinishedRuns> {
  const runs = ledgerFiles(query.folder).flatMap((file) => runOf(file, query.service));
  const latest = runs.findLast(({ open }) => open.list === query.list);
  const resumed = new Set(runs.map(({ open }) => open.resumes));
  // A run is resumed only once: a copy of its file at the end of the chain must not make it the latest again.
  const isOpen = latest !== undefined && !resumed.has(latest.run) && isResumable(latest.open, query);
  const end = isOpen ? await endOf(latest, query.key) : 'done';
  const chain = latest === undefined || end === 'done' ? [] : chainOf(latest, runs);
  const left = runs.filter((run) => !chain.includes(run) && !resumed.has(run.run) && !endsClosed(run.path));
  const { decisions, purging } = await outcomesOf([...chain].reverse(), query);
  // A run that was worked through with undecided ids is asked for those alone; of any other run only what is done counts (S35, S57).
  const known = end === 'undecided' ? ['done', 'rejected'] : ['done'];
  return {
    resumes: chain[0]?.run,
    notice: left.length === 0 ? undefined : noticeOf(left),
    decisions: new Map([...decisions].filter(([, decision]) => known.includes(decision))),
    purging,
  };
}

/** How a run ended: as it should, with undecided ids, or not at all. */
async function endOf(run: Run, key: LedgerKey): Promise<'done' | 'undecided' | 'open'> {
  let undecided = 0;
  const { isClosed } = await readSoundFile(run, key, (line) => {
    if (line.kind === 'close') undecided = line.counts.undecided ?? 0;
  });
  if (!isClosed) return 'open';
  return undecided > 0 ? 'undecided' : 'done';
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

/** What these runs, oldest first, have decided, and what they were about to remove and did not say they had. */
async function outcomesOf(runs: readonly Run[], query: UnfinishedQuery) {
  const decisions = new Map<string, 'done' | 'rejected'>();
  const purging = new Map<string, Readonly<Record<string, number>>>();
  for (const run of runs) {
    // Each run is classified by its verified first line.
    let isTrusted = false;
    await readSoundFile(run, query.key, (line) => {
      if (line.kind === 'open') {
        isTrusted = line.run === run.run && runOf(run, query.service).length > 0 && isResumable(line, query);
      } else if (!isTrusted) return;
      else if (line.kind === 'after') {
        if (line.outcome === 'done' || line.outcome === 'rejected') decisions.set(line.id, line.outcome);
        else if (decisions.get(line.id) === 'rejected') decisions.delete(line.id);
      } else if (line.kind === 'purging') purging.set(line.target, line.counts);
      else if (line.kind === 'purge' && line.outcome !== 'open') purging.delete(line.target);
    });
  }
  return { decisions, purging };
}

function noticeOf(left: readonly Run[]): string {
  const named = left.slice(-MAX_NAMED).map(({ run, open }) => `${run} of ${dateOf(open)}`);
  const more = left.length > named.length ? `, and ${left.length - named.length} before them` : '';
  return `Runs that never ended are not resumed, because they had another list or began more than 24 hours ago: ${named.join(', ')}${more}. What they left open is deleted only where this list names it.`;
}

/** An unchecked line may hold anything. */
function dateOf({ at }: Partial<OpenLine>): string {
  const ms = Date.parse(at ?? '');
  return Number.isNaN(ms) ? 'an unknown date' : new Date(ms).toISOString();
}
