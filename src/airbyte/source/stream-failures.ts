import { UserError } from '../../base/errors.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { traceOf } from '../protocol/messages.ts';

/** The streams of one read that failed. Each failure is reported at once; all together fail the run at its end. */
export class StreamFailures {
  readonly #context: VerbContext;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];

  constructor(context: VerbContext) {
    this.#context = context;
  }

  async add(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, redactor } = this.#context;
    const failure = error instanceof UserError ? error.with({ where: { stream } }) : error;
    await writer.write(traceOf(failure, clock.now(), redactor.mask));
  }

  /**
   * Throws when any of `count` streams failed: the exit code alone tells some readers. The first failure says what to
   * do.
   */
  throwAny(count: number): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    if (!(first.error instanceof UserError)) throw first.error;
    const names = this.#failures.map(({ stream }) => stream).join(', ');
    const text = `${this.#failures.length} of ${count} streams could not be read to the end (${names}): ${first.error.platformMessage}`;
    throw first.error.with({ message: text });
  }
}
