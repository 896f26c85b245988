import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configFailure, EXIT, messageOf } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { makeFolders } from '../../fs/make-folders.ts';
import { Chain } from './chain.ts';
import { fileName, type LedgerFile, ledgerFiles } from './files.ts';
import { keyInFolder, LedgerKey } from './key.ts';
import { Ledger } from './ledger.ts';
import { type Chained, GENESIS, type OpenLine } from './line.ts';
import { LedgerLock } from './lock.ts';
import { FileOutput } from './output.ts';
import { type FileFacts, openLineOf, readLedgerFile } from './read.ts';
import type { LedgerStore, OpenContent } from './store.ts';

/** The service whose profiles a run deletes: only its own unfinished run is ever resumed. */
export interface ServiceName {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** A ledger's folder, locked for one run. `close` unlocks it. */
export class LedgerFolder implements LedgerStore {
  readonly key: LedgerKey;
  readonly #options: FolderOptions;
  readonly #lock: LedgerLock;
  #resumes: string | undefined;

  private constructor(options: FolderOptions, lock: LedgerLock, key: LedgerKey) {
    this.#options = options;
    this.#lock = lock;
    this.key = key;
  }

  /** Locks the folder (made, 0700, if it is not there) and finds or makes its key. */
  static async open(options: FolderOptions): Promise<LedgerFolder> {
    const { folder, clock } = options;
    makeFolder(folder);
    const lock = await LedgerLock.take(folder, clock);
    try {
      return new LedgerFolder(options, lock, new LedgerKey(options.key ?? keyInFolder(folder)));
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  async eachDone(listener: (idHash: Buffer) => void): Promise<void> {
    const { folder, service } = this.#options;
    this.#resumes = await eachDone(folder, this.key, service, listener);
  }

  /** Begins the run's own file, which follows the file before it in the chain. */
  async start(content: OpenContent): Promise<Ledger> {
    const { folder, service, clock } = this.#options;
    const files = ledgerFiles(folder);
    const head = await headOf(files, this.key);
    const run = randomBytes(8).toString('hex');
    const path = join(folder, fileName((files.at(-1)?.number ?? 0) + 1, run));
    const output = this.#lock.guarded(await FileOutput.create(path, folder));
    const ledger = new Ledger(run, new Chain(this.key, head), output, clock);
    await ledger.open({
      base_url: service.baseUrl,
      service_id: service.serviceId,
      key_check: this.key.check,
      ...(this.#resumes !== undefined && { resumes: this.#resumes }),
      ...content,
    });
    return ledger;
  }

  close(): void {
    this.#lock.release();
  }
}

export interface FolderOptions {
  readonly folder: string;
  /** Absent: the folder's own, made if it has none. */
  readonly key: Secret | undefined;
  readonly service: ServiceName;
  readonly clock: Clock;
}

function makeFolder(folder: string): void {
  try {
    makeFolders(folder, 0o700);
  } catch (error) {
    throw configFailure(`The ledger's folder ${folder} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
}

/** Code of the last line of all; a file that a crash left without any line is passed over. */
async function headOf(files: readonly LedgerFile[], key: LedgerKey): Promise<string> {
  for (const file of files.toReversed()) {
    const { head } = await soundFacts(file, key);
    if (head !== undefined) return head;
  }
  return GENESIS;
}

/**
 * Tells the hash of every id that the service's unfinished run (and those which that one went on with) is proved to have
 * done. Returns that run, or undefined when its latest run came to its end.
 */
export async function eachDone(
  folder: string,
  key: LedgerKey,
  service: ServiceName,
  listener: (idHash: Buffer) => void,
): Promise<string | undefined> {
  const files = ledgerFiles(folder);
  const latest = files.findLast((file) => isOf(service, openLineOf(file.path)));
  if (latest === undefined || (await soundFacts(latest, key)).isClosed) return undefined;
  for (let at: LedgerFile | undefined = latest; at !== undefined; ) {
    let before: string | undefined;
    await soundFacts(at, key, (line) => {
      if (line.kind === 'open') before = line.resumes;
      if (line.kind === 'after' && line.outcome === 'done') listener(Buffer.from(line.id, 'hex'));
    });
    at = files.find((one) => one.run === before);
  }
  return latest.run;
}

const isOf = (service: ServiceName, line: Partial<OpenLine> | undefined): boolean =>
  line?.base_url === service.baseUrl && line.service_id === service.serviceId;

/** Reads a file that is to be relied on: a wrong key is the user's, anything else that is wrong ends the run. */
async function soundFacts(file: LedgerFile, key: LedgerKey, see?: (line: Chained) => void): Promise<FileFacts> {
  const check = openLineOf(file.path)?.key_check;
  if (check !== undefined && check !== key.check) {
    throw configFailure(`The ledger ${file.name} was written under another key: give that one as ledger_key.`);
  }
  const facts = await readLedgerFile(file.path, key, see);
  if (facts.broken === undefined) return facts;
  const { line, problem } = facts.broken;
  throw configFailure(
    `The ledger ${file.name} is broken: line ${line} ${problem}. Put the file back as it was, or begin a new ledger_dir.`,
    { exitCode: EXIT.defect },
  );
}
