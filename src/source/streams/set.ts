import type { ConfiguredCatalog, ConfiguredStream } from '../../airbyte/configured-catalog.ts';
import { type StateInput, stateOf } from '../../airbyte/state-input.ts';
import { traceOf } from '../../airbyte/trace.ts';
import { Failure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import { inStream, planStream } from './plan.ts';
import { type Output, StreamMessages, StreamRun } from './run.ts';

export interface StreamSetDeps extends Output {
  readonly logger: Logger;
  readonly mask: (text: string) => string;
}

/** All streams of one read, and what failed among them. */
export class StreamSet {
  readonly runs: StreamRun[] = [];
  readonly #deps: StreamSetDeps;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];
  #count = 0;

  constructor(deps: StreamSetDeps) {
    this.#deps = deps;
  }

  /** Writes STARTED for every configured stream, and the final status of those that have nothing to read or cannot be read. */
  async open(catalog: ConfiguredCatalog, saved: StateInput, config: SourceConfig): Promise<void> {
    this.#count = catalog.streams.length;
    const now = this.#deps.clock.now();
    const warned = new Set<string>();
    for (const stream of catalog.streams) {
      const planned = planStream(stream, stateOf(saved, stream.descriptor), config, now);
      if (planned.kind === 'refused') await this.#refuse(stream, planned.failure);
      else if (planned.kind === 'rest') await this.#rest(stream, planned.state, planned.warning);
      else {
        if (planned.warning !== undefined) this.#deps.logger.warn('state.fresh_start', planned.warning);
        for (const { event, message } of planned.plan.warnings) {
          if (!warned.has(message)) this.#deps.logger.warn(event, message);
          warned.add(message);
        }
        this.runs.push(new StreamRun(stream, planned.name, planned.plan, this.#deps));
      }
    }
    for (const run of this.runs) await run.open();
  }

  /** Ends failed streams: writes the failure and INCOMPLETE. The last state of each remains valid. */
  async fail(runs: readonly StreamRun[], error: unknown): Promise<void> {
    for (const run of runs) {
      if (!run.isOpen) continue;
      await this.#trace(run.name, error);
      await run.close('INCOMPLETE');
    }
  }

  /** Throws when any stream failed: the exit code alone tells some readers. The first failure says what to do. */
  finish(): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    if (!(first.error instanceof Failure)) throw first.error;
    const { kind, message, internal, exitCode } = first.error;
    const streams = this.#failures.map((failure) => failure.stream).join(', ');
    const text = `${this.#failures.length} of ${this.#count} streams could not be read to the end (${streams}): ${message}`;
    throw new Failure(kind, text, { internal, exitCode, cause: first.error });
  }

  async #refuse(stream: ConfiguredStream, failure: Failure): Promise<void> {
    const messages = new StreamMessages(stream, this.#deps);
    await messages.status('STARTED');
    await this.#trace(stream.name, failure);
    await messages.status('INCOMPLETE');
  }

  async #rest(stream: ConfiguredStream, state: object, warning: string): Promise<void> {
    const messages = new StreamMessages(stream, this.#deps);
    this.#deps.logger.warn('state.future', warning);
    await messages.status('STARTED');
    await messages.state(state, 0);
    await messages.status('RUNNING');
    await messages.status('COMPLETE');
  }

  async #trace(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#deps;
    const failure = error instanceof Failure ? inStream(error, stream) : error;
    await writer.write(traceOf(failure, clock.now(), mask));
  }
}
