import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf, messageOf, UserError } from '../../base/errors.ts';
import { sha256 } from '../../base/json.ts';
import type { Logger } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import { replaceLockedFile } from '../../fs/atomic-file.ts';
import { withLockFile } from '../../fs/lock.ts';
import { makePrivateFolder } from '../../fs/private-folder.ts';
import { EMPTY_STATE, parseQuotaState, type QuotaState } from './state.ts';

/** Wait for the lock, which is held for a millisecond; after it the run continues without the shared state. */
const LOCK_WAIT_MS = 4_000;
/** Maximum size of the file; a state of thousands of exports has a tenth of this. */
const MAX_STATE_BYTES = 1 << 20;

export interface QuotaStateOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId'> {
  /** Folder under which the processes of one user share their state; undefined if none is shared. */
  readonly stateRoot?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state that the processes of one user share: a file that is replaced as a whole. */
export class QuotaStateFile {
  /** Folder of the file; undefined if this process counts alone. */
  #folder: string | undefined;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #state: QuotaState = EMPTY_STATE;
  /** Text of the file when it was read last. */
  #text: string | undefined;
  #warned = false;

  constructor({ stateRoot: root, baseUrl, serviceId, clock, logger }: QuotaStateOptions) {
    // Users of one machine share its temporary folder, but each has a folder of files in it.
    this.#folder = root === undefined ? undefined : join(root, `dfinery-elt-quota-${process.getuid?.() ?? 'user'}`);
    this.#path = join(this.#folder ?? '', `quota-${sha256([baseUrl, serviceId]).slice(0, 16)}.json`);
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Reads without waiting for a lock: the state is whole, but may be a moment old. */
  read(): QuotaState {
    if (this.#folder === undefined) return this.#state;
    this.#text = undefined;
    try {
      this.#text = statSync(this.#path).size > MAX_STATE_BYTES ? '' : readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return EMPTY_STATE;
      this.#countAlone(error);
      return this.#state;
    }
    const state = parseQuotaState(this.#text);
    if (state !== undefined) return state;
    this.#warnOnce(`The state of the quota in ${this.#path} cannot be understood: counting starts again.`);
    return EMPTY_STATE;
  }

  /**
   * Changes the state while no other process does. Throws a configuration failure for a folder of somebody else; if the
   * disk or a lock fails, this process counts alone from then on.
   */
  async update<T>(change: (state: QuotaState) => readonly [QuotaState, T], signal?: AbortSignal): Promise<T> {
    const apply = () => {
      const [state, result] = change(this.read());
      this.#state = state;
      return result;
    };
    if (this.#folder === undefined) return apply();
    try {
      makePrivateFolder(this.#folder, 'The folder of the quota');
      const what = `the state of the quota in ${this.#path}`;
      const lock = { what, clock: this.#clock, waitMs: LOCK_WAIT_MS, signal };
      return await withLockFile(`${this.#path}.lock`, lock, (checkHeld) => {
        const result = apply();
        this.#write(checkHeld);
        return result;
      });
    } catch (error) {
      signal?.throwIfAborted();
      const isOfDisk = error instanceof UserError ? error.kind === 'transient' : codeOf(error) !== undefined;
      if (!isOfDisk) throw error;
      this.#state = this.read();
      this.#countAlone(error);
      return apply();
    }
  }

  /** Writes the state, unless nothing has changed, as while this process waits for the exports of others. */
  #write(checkHeld: () => void): void {
    const text = JSON.stringify(this.#state);
    if (text === this.#text) return;
    try {
      checkHeld();
      replaceLockedFile(this.#path, text);
    } catch (error) {
      this.#countAlone(error);
    }
  }

  /** After a failed read or write the shared file is not used again: it lacks what happened since. */
  #countAlone(error: unknown): void {
    this.#warnOnce(
      `The state of the quota cannot be kept in ${this.#path} (${messageOf(error)}): this run counts alone, other ` +
        'processes of this machine do not see its exports.',
    );
    this.#folder = undefined;
  }

  #warnOnce(message: string): void {
    if (!this.#warned) this.#logger.warn('quota.state', message);
    this.#warned = true;
  }
}
