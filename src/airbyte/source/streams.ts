import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { type ConfiguredCatalog, type SavedStates, streamKey } from '../protocol/input.ts';
import { traceOf } from '../protocol/messages.ts';
import { Stream, type StreamOutput, writeStatus } from './stream.ts';
import { planStream, type StreamPlan } from './stream-plans.ts';

export interface StreamsOutput extends StreamOutput {
  readonly mask: (text: string) => string;
}

/** All streams of one read, and what failed among them. */
export class Streams {
  readonly all: Stream[] = [];
  readonly #output: StreamsOutput;
  readonly #count: number;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];

  private constructor(output: StreamsOutput, count: number) {
    this.#output = output;
    this.#count = count;
  }

  /** Plans and starts every configured stream. One that cannot be planned ends, and so does one without a day to read. */
  static async open(
    { streams: configured }: ConfiguredCatalog,
    saved: SavedStates,
    config: SourceConfig,
    output: StreamsOutput,
  ): Promise<Streams> {
    const streams = new Streams(output, configured.length);
    const now = output.clock.now();
    for (const stream of configured) {
      let planned: StreamPlan;
      try {
        planned = planStream(stream, saved.get(streamKey(stream.descriptor)), config, now);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        await writeStatus(output, stream.descriptor, 'STARTED');
        await streams.#addFailure(stream.name, error);
        await writeStatus(output, stream.descriptor, 'INCOMPLETE');
        continue;
      }
      streams.all.push(new Stream(stream, planned, output));
    }
    for (const stream of streams.all) await stream.open();
    for (const stream of streams.all) if (stream.plan.days.length === 0) await stream.close('COMPLETE');
    return streams;
  }

  get open(): Stream[] {
    return this.all.filter(({ isOpen }) => isOpen);
  }

  wanting(day: Day): Stream[] {
    return this.all.filter((stream) => stream.wants(day));
  }

  /** Ends failed streams: writes the failure and INCOMPLETE. The last state of each remains valid. */
  async fail(streams: readonly Stream[], error: unknown): Promise<void> {
    for (const stream of streams) {
      if (!stream.isOpen) continue;
      await this.#addFailure(stream.name, error);
      await stream.close('INCOMPLETE');
    }
  }

  /** Throws when any stream failed: the exit code alone tells some readers. The first failure says what to do. */
  finish(): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    if (!(first.error instanceof UserError)) throw first.error;
    const names = this.#failures.map(({ stream }) => stream).join(', ');
    const text = `${this.#failures.length} of ${this.#count} streams could not be read to the end (${names}): ${first.error.message}`;
    throw first.error.with({ message: text });
  }

  async #addFailure(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#output;
    const failure = error instanceof UserError ? error.with({ where: { stream } }) : error;
    await writer.write(traceOf(failure, clock.now(), mask));
  }
}
