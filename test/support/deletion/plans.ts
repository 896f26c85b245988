import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, vi } from 'vitest';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import type { DestinationConfig } from '../../../src/config/destination.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { type CaseResult, type RunContext, runDeletionCase } from '../../../src/erasure/case.ts';
import type { PurgeRequest } from '../../../src/erasure/purge.ts';
import type { DeletionReport } from '../../../src/erasure/report.ts';
import type { ProfileDeleter } from '../../../src/erasure/send-requests.ts';
import type { DeletionAnswer } from '../../../src/service/delete/client.ts';
import type { DeletionKind } from '../../../src/service/delete/outcomes.ts';
import type { People } from '../../../src/targets/people.ts';
import type { StatefulTarget } from '../../../src/targets/target.ts';
import type { Json } from '../airbyte/connector.ts';
import { Folders, quickClock } from './deletions.ts';

export const names = (count: number) => Array.from({ length: count }, (_, i) => `p${i}`);

export const answerOf = (kind: DeletionKind, code: string, remaining?: number, resetAt?: number): DeletionAnswer => ({
  kind,
  code,
  status: 200,
  message: 'the answer',
  limits: { remaining, resetAt, retryAt: undefined },
});

export const done = () => answerOf('done', '20000');

type Answering = (id: string, nth: number, signal: AbortSignal) => DeletionAnswer | Promise<DeletionAnswer>;

/** The behaviour of a place of a purge when its people are removed. */
export type Removing = (place: string) => Promise<void>;

/** A plan of a list of ids, and what follows when it is confirmed: two runs of the same case. */
export interface ForgetPlan {
  readonly hash: string;
  readonly report: DeletionReport;
  execute(confirm: string, deleter: ProfileDeleter, removing?: Removing): Promise<CaseResult>;
}

interface ForgetOptions {
  readonly config: DestinationConfig;
  readonly io: RunContext;
  readonly spoolDir: string;
}

/** Plans the deletion of these ids; `execute` throws the failure of a case that deleted nobody. */
export async function planForget(
  ids: AsyncIterable<unknown>,
  { config, io, spoolDir }: ForgetOptions,
): Promise<ForgetPlan> {
  const list: unknown[] = [];
  for await (const id of ids) {
    io.signal.throwIfAborted();
    list.push(id);
  }
  const run = (consent: { confirm: string } | undefined, deleter: ProfileDeleter, purge?: PurgeRequest) =>
    runDeletionCase({
      config,
      io,
      consent,
      deleter,
      purge,
      async read(into) {
        for (const id of list) into.addRow(0, id, config.maxIdLength);
      },
    });
  const nobody = { deleteProfile: () => Promise.reject(new Error('a plan asks for nobody')) };
  const { hash, report } = await run(undefined, nobody);
  return {
    hash,
    report,
    async execute(confirm, deleter, removing) {
      const purge = removing && purgeBy(removing, io, spoolDir);
      const planned = purge === undefined ? hash : (await run(undefined, nobody, purge)).hash;
      const done = await run({ confirm: confirm === hash ? planned : confirm }, deleter, purge);
      if (done.report.mode === 'dry_run' && done.failure !== undefined) throw done.failure;
      return done;
    },
  };
}

/** A purge of places that have a row of everybody. */
export function purgeBy(
  removing: Removing,
  io: Omit<RunContext, 'random' | 'lines'>,
  spoolDir: string,
  paths = ['/somewhere/events.duckdb'],
): PurgeRequest {
  const nothing = { idsWithoutUnifiedId: [], shared: 0, service: undefined, warnings: [] };
  const found = (ids: readonly string[]) => ({
    ...nothing,
    unifiedIds: ids.map((text) => ({ text, hashKey: undefined })),
    people: ids.length,
    ids,
    rows: ids.length,
  });
  const people: People = {
    find: async (_place, { ids }) => found(ids),
    tryPurge: async (_place, { ids }) => ({ found: found(ids), foreignTables: [] }),
    async purge(place, { ids }, { onFound }) {
      await onFound(found(ids));
      await removing(place);
      const sizes = { rows: 0, rowsRemoved: ids.length, files: [], bytesBefore: 9, bytesAfter: 5 };
      return { ...sizes, found: found(ids), unreached: [] };
    },
    async *rows() {},
  };
  const target: StatefulTarget = {
    name: 'duckdb',
    place: { name: 'file', describe: '' },
    label: '',
    summaries: { sync: '', compact: '' },
    open: () => Promise.reject(new Error('not to be loaded into')),
    maintenance: () => Promise.reject(new Error('not to be looked after')),
    people: async () => people,
  };
  return {
    places: paths.map((path) => ({ target, path })),
    column: 'member',
    mapping: undefined,
    hashKey: undefined,
    suppression: undefined,
    spoolDirs: [spoolDir],
    options: { lockWaitMs: 0, spoolDir, env: () => undefined, clock: io.clock, logger: io.logger, signal: io.signal },
    isPurgeOnly: false,
    maxPeople: undefined,
    allowsShared: false,
    forgetCopies: [],
    listFile: undefined,
  };
}

/** Plans of lists of ids, with a clock whose time passes at once and a ledger in `folders`. */
export class Plans {
  readonly folders = new Folders();
  readonly events: LogEvent[] = [];
  /** Calls that are due later, and that were neither made nor cancelled. */
  readonly timers: { readonly ms: number; readonly call: () => void }[] = [];
  readonly clock = quickClock();
  readonly stop = new AbortController();
  onLongSleep: () => void = () => {};

  get logged(): string[] {
    return this.events.map(({ message }) => message);
  }

  plan(ids: Iterable<unknown> | AsyncIterable<unknown>, more: Json = {}): Promise<ForgetPlan> {
    const all = (async function* () {
      yield* ids;
    })();
    return planForget(all, { ...this.#settings(more), spoolDir: this.folders.root });
  }

  /** Deletes a list without a plan before it, as a platform does; nobody is asked for. */
  run(ids: Iterable<unknown>, more: Json = {}): Promise<CaseResult> {
    return runDeletionCase({
      ...this.#settings(more),
      consent: 'configured',
      deleter: { deleteProfile: async () => done() },
      async read(into) {
        for (const id of ids) into.addRow(0, id, 100);
      },
    });
  }

  #settings(more: Json): Pick<ForgetOptions, 'config' | 'io'> {
    const base = {
      base_url: 'http://127.0.0.1:9',
      service_id: 's',
      import_token: 't',
      ledger_dir: this.folders.ledger,
    };
    const { config } = parseDestinationConfig({ ...base, max_concurrent_requests: 1, ...more }, () => undefined);
    const after = (ms: number, callback: () => void) => {
      const cancel = () => {
        const at = this.timers.indexOf(timer);
        if (at !== -1) this.timers.splice(at, 1);
      };
      const call = () => {
        cancel();
        callback();
      };
      const timer = { ms, call };
      this.timers.push(timer);
      return cancel;
    };
    const sleep = (ms: number, signal?: AbortSignal) => {
      if (ms > 30_000) this.onLongSleep();
      return this.clock.sleep(ms, signal);
    };
    const logger = createLogger(
      (event) => this.events.push(event),
      'info',
      (text) => text,
    );
    const clock = { ...this.clock, sleep, after };
    const io = { clock, random: () => 0.5, logger, signal: this.stop.signal, lines: undefined };
    return { config, io };
  }

  /** Deletes a list; `answer` is given the id and how often it was asked for. */
  async execute(ids: readonly unknown[], answer: Answering, more: Json = {}, removing?: Removing) {
    const asked: string[] = [];
    const real = await this.plan(ids, more);
    const deleteProfile = async (id: string, signal: AbortSignal) => {
      asked.push(id);
      return answer(id, asked.filter((one) => one === id).length, signal);
    };
    return { ...(await real.execute(real.hash, { deleteProfile }, removing)), asked };
  }

  /** The lines of the ledger by their kinds. */
  kinds(): unknown[] {
    return this.folders.ledgerLines().map(({ kind }) => kind);
  }
}

/** Plans, made for each test of the calling file and removed after it. */
export function setUpPlans(): { plans: Plans } {
  const setup: { plans?: Plans } = {};
  beforeEach(() => {
    setup.plans = new Plans();
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    setup.plans?.folders.close();
  });
  return setup as { plans: Plans };
}

/** The files under `folder` that this process has open, also those without a name (Linux). */
export const openFilesIn = (folder: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    const path = join('/proc/self/fd', fd);
    try {
      return readlinkSync(path).startsWith(folder) ? [path] : [];
    } catch {
      // The list itself was open while it was read.
      return [];
    }
  });
