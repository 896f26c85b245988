import type { Logger } from '../base/log.ts';

/** The warnings of a purge, each logged once, since the forecast, the trial and the purge find the same. */
export class PurgeWarnings {
  readonly #logger: Logger;
  readonly #warned = new Set<string>();
  readonly #unreached: string[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Sentences about what may still hold the people and is out of reach. */
  get unreached(): readonly string[] {
    return this.#unreached;
  }

  warn(event: string, sentence: string): void {
    if (this.#warned.has(sentence)) return;
    this.#warned.add(sentence);
    this.#logger.warn(event, sentence);
  }

  warnUnreached(sentence: string): void {
    if (!this.#unreached.includes(sentence)) this.#unreached.push(sentence);
    this.warn('purge.unreached', sentence);
  }

  /** Warns of the folders, if there are any, in which other runs have rows that are alive, or may be. */
  warnOfLiveRuns(folders: readonly string[]): void {
    if (folders.length === 0) return;
    this.warnUnreached(
      `Runs that are under way have rows in ${folders.join(', ')}, which may name the people until those runs ` +
        'end. No later run loads what they have verified by now; what one that fails leaves there goes with a ' +
        'purge after it, or after seven days.',
    );
  }
}
