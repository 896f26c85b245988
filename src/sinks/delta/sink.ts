import type { Logger } from '../../base/log.ts';
import type { PriorLoads, Window } from '../../extract/window.ts';
import { logChanges } from '../../table/changes.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import type { Rules } from '../../table/plan.ts';
import { Zone } from '../../types/zone.ts';
import { otherTimezone } from '../prior-loads.ts';
import { type Commit, commitEach, type Sink } from '../sink.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { idsAreKeys } from '../sql/rows/file-query.ts';
import type { TargetOptions } from '../target.ts';
import { commitChange, type Settings } from './commit/change.ts';
import { prepareWindow } from './commit/window.ts';
import { readableName } from './files/names.ts';
import { RunObjects } from './history.ts';
import { Lake, type LakeOptions } from './lake.ts';
import { priorLoadsOf } from './prior-loads.ts';
import { vacuum } from './vacuum.ts';

export interface DeltaSinkOptions
  extends TargetOptions,
    Omit<LakeOptions, 'memoryLimit' | 'clock' | 'logger' | 'signal'> {
  /** Tables wanted beside `events`, which is always kept: the others follow from it. */
  readonly tables: readonly TableName[];
  /** How long files that left the table stay for its readers. */
  readonly retentionMs: number;
}

/** Opens Delta tables for loading, creates missing ones, and removes the leftovers of dead runs. Throws Failure. */
export async function openDeltaSink(options: DeltaSinkOptions): Promise<Sink> {
  const lake = await Lake.open(options, 'write').catch((error) => {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  });
  try {
    const zone = options.timezone === undefined ? undefined : new Zone(options.timezone);
    checkTimezone(lake, options.timezone ?? null);
    const { retentionMs, clock } = options;
    await vacuum(lake, clock.now(), retentionMs, options.logger);
    const kept = lake.events.domains.table()?.tables ?? [];
    const tables = TABLES.filter((name) => name === 'events' || options.tables.includes(name) || kept.includes(name));
    const rules: Rules = {
      zoned: zone !== undefined,
      columnTypes: options.columnTypes,
      pinned: options.pinned,
      mode: options.schemaMode,
      nameOf: readableName,
    };
    return new TableSink(lake, rules, { zone, tables, retentionMs, now: () => clock.now() }, options.logger);
  } catch (error) {
    await lake.close();
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}

class TableSink implements Sink {
  readonly #lake: Lake;
  readonly #rules: Rules;
  readonly #settings: Settings;
  readonly #logger: Logger;
  readonly runs: RunObjects;

  constructor(lake: Lake, rules: Rules, settings: Settings, logger: Logger) {
    this.#lake = lake;
    this.#rules = rules;
    this.#settings = settings;
    this.#logger = logger;
    this.runs = new RunObjects(lake.storage);
  }

  async readPriorLoads(): Promise<PriorLoads> {
    return priorLoadsOf(this.#lake);
  }

  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit> {
    return commitEach(batch, (window) => this.#commit(window, signal));
  }

  async #commit(window: Window, signal: AbortSignal): Promise<Commit> {
    const lake = this.#lake;
    try {
      await lake.engine.run(`SET preserve_insertion_order = ${!idsAreKeys(window)}`);
      const work = () => prepareWindow(lake, window, this.#rules, this.#settings);
      const { prepared, commit, plan, changes } = await lake.prepare(work, signal);
      await commitChange(lake, prepared, this.#settings);
      this.runs.add(changes);
      logChanges(this.#logger, plan, commit.rescued);
      return commit;
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, lake.address);
    }
  }

  close(): Promise<void> {
    return this.#lake.close();
  }
}

function checkTimezone(lake: Lake, wanted: string | null): void {
  const info = lake.events.domains.table();
  if (info === undefined || info.window === 0 || (info.timezone ?? null) === wanted) return;
  throw otherTimezone(lake.address, 'place', { wanted, stored: info.timezone ?? null });
}
