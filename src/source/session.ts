import type { ConfiguredCatalog, ConfiguredStream } from '../airbyte/configured-catalog.ts';
import { type StateInput, stateOf } from '../airbyte/state-input.ts';
import { traceOf } from '../airbyte/trace.ts';
import { Failure } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { SourceConfig } from '../config/source.ts';
import { inStream, judgeStream } from './stream-plan.ts';
import { type Output, StreamRun, StreamVoice } from './stream-run.ts';

export interface SessionWorld extends Output {
  readonly logger: Logger;
  readonly mask: (text: string) => string;
}

/** All streams of one read, and what failed among them. */
export class Session {
  readonly runs: StreamRun[] = [];
  readonly #world: SessionWorld;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];
  #count = 0;

  constructor(world: SessionWorld) {
    this.#world = world;
  }

  /** Says of every configured stream that it starts, and of those with nothing to read or no way to do it how they end. */
  async open(catalog: ConfiguredCatalog, saved: StateInput, config: SourceConfig): Promise<void> {
    this.#count = catalog.streams.length;
    const now = this.#world.clock.now();
    const warned = new Set<string>();
    for (const stream of catalog.streams) {
      const verdict = judgeStream(stream, stateOf(saved, stream.descriptor), config, now);
      if (verdict.kind === 'refused') await this.#refuse(stream, verdict.failure);
      else if (verdict.kind === 'rest') await this.#rest(stream, verdict.state, verdict.warning);
      else {
        if (verdict.warning !== undefined) this.#world.logger.warn('state.fresh_start', verdict.warning);
        for (const { event, message } of verdict.plan.warnings) {
          if (!warned.has(message)) this.#world.logger.warn(event, message);
          warned.add(message);
        }
        this.runs.push(new StreamRun(stream, verdict.name, verdict.plan, this.#world));
      }
    }
    for (const run of this.runs) await run.open();
  }

  /** Ends streams that cannot go on: what happened, and INCOMPLETE. The last state of each stands. */
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
    const voice = new StreamVoice(stream, this.#world);
    await voice.status('STARTED');
    await this.#trace(stream.name, failure);
    await voice.status('INCOMPLETE');
  }

  async #rest(stream: ConfiguredStream, state: object, warning: string): Promise<void> {
    const voice = new StreamVoice(stream, this.#world);
    this.#world.logger.warn('state.future', warning);
    await voice.status('STARTED');
    await voice.state(state, 0);
    await voice.status('RUNNING');
    await voice.status('COMPLETE');
  }

  async #trace(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#world;
    const told = error instanceof Failure ? inStream(error, stream) : error;
    await writer.write(traceOf(told, clock.now(), mask));
  }
}
