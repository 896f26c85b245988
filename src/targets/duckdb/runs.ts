import validRun from '../../../schemas/run.validator';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/faults.ts';
import { MAX_RUNS, type RunHistory, type RunRecord, unended } from '../../table/runs.ts';
import { checked, RUNS, readRecords, replaceRecords } from './record-tables.ts';

type StoredRun = RunRecord & { readonly number: number };

export async function readRuns(engine: Engine): Promise<RunRecord[]> {
  const runs = await readRecords<StoredRun>(engine, RUNS);
  return runs.map(
    ({ number: _number, ...run }) => checked<{ run: RunRecord }>(engine, RUNS, validRun, { v: 1, run }).run,
  );
}

export class RunTable implements RunHistory {
  readonly #engine: Engine;
  #run: StoredRun | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  begin(run: RunRecord): Promise<string[]> {
    return this.#write(async () => {
      const before = await readRecords<StoredRun>(this.#engine, RUNS);
      this.#run = { ...run, number: (before.at(-1)?.number ?? 0) + 1 };
      await replaceRecords(this.#engine, RUNS, before, [...before, this.#run].slice(-MAX_RUNS));
      return unended(before);
    });
  }

  async end(run: RunRecord): Promise<void> {
    const begun = this.#run;
    if (begun === undefined) return;
    await this.#write(() => replaceRecords(this.#engine, RUNS, [begun], [{ ...begun, ...run }]));
  }

  /** Runs work in a transaction, also of a run that was stopped, which closes its record. Throws UserError. */
  #write<T>(work: () => Promise<T>): Promise<T> {
    return this.#engine.transaction(work).catch((error: unknown) => {
      throw engineError(error, this.#engine.file);
    });
  }
}
