import { expect } from 'vitest';
import { source } from '../../../src/airbyte/source/source.ts';
import { LeapingClock } from '../clock.ts';
import { SERVICE_ID, startTestService, TOKENS } from '../service/start-service.ts';
import type { ScenarioPatch, TestService, TestServiceOptions } from '../service/test-service.ts';
import { configured, InputFiles, type Json, type Output, runInProcess } from './connector.ts';
import { formProblems, readProblems } from './message-rules.ts';

/** The source and a simulator under one clock that only moves when something sleeps. */
export class SourceFixture {
  readonly clock: LeapingClock;
  readonly files = new InputFiles();
  readonly sim: TestService;
  /** Exports before the last run. */
  #earlier = 0;

  private constructor(sim: TestService, clock: LeapingClock) {
    this.sim = sim;
    this.clock = clock;
  }

  static async start(scenario: ScenarioPatch = {}, more: Partial<TestServiceOptions> = {}): Promise<SourceFixture> {
    const clock = new LeapingClock();
    return new SourceFixture(await startTestService(scenario, { clock, rowsPerDay: 30, ...more }), clock);
  }

  config(more: Json = {}): Json {
    return {
      base_url: this.sim.url,
      service_id: SERVICE_ID,
      export_token: TOKENS.export,
      start_date: '2026-01-15',
      // The fewest exports with which a test sees a day again.
      lookback_days: 1,
      spool_dir: this.files.dir,
      ...more,
    };
  }

  /** Runs a verb; all messages must have the form of the protocol. */
  async run(
    verb: string,
    config: Json,
    inputs: { readonly catalog?: Json; readonly state?: unknown } = {},
  ): Promise<Output> {
    const words = [verb, '--config', this.files.write(config)];
    if (inputs.catalog !== undefined) words.push('--catalog', this.files.write(inputs.catalog, 'txt'));
    if (inputs.state !== undefined) words.push('--state', this.files.write(inputs.state, 'txt'));
    this.#earlier = this.sim.requests().length;
    const output = await runInProcess(source, words, { clock: this.clock });
    expect(formProblems(output.messages)).toEqual([]);
    return output;
  }

  async catalog(more: Json = {}, only?: readonly string[]): Promise<Json> {
    const output = await this.run('discover', this.config());
    return configured(output.catalog().streams, more, only);
  }

  /** Reads by a catalog; what is written must be as the protocol requires, also of a read that fails. */
  async read(catalog: Json, state?: unknown, more: Json = {}): Promise<Output> {
    const output = await this.run('read', this.config(more), { catalog, ...(state !== undefined && { state }) });
    expect(readProblems(output, catalog)).toEqual([]);
    return output;
  }

  /** The days that the last run requested, one text an export. */
  requested(): string[] {
    return this.sim
      .requests()
      .slice(this.#earlier)
      .map(({ body }) => {
        const { from_date: first, to_date: last } = body as { from_date: string; to_date: string };
        return first === last ? first : `${first}..${last}`;
      });
  }

  close(): Promise<void> {
    return this.sim.close();
  }
}
