import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, vi } from 'vitest';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import type { OnCompleted } from '../../../src/deletion/execute/deletion-run.ts';
import { type ForgetPlan, planForget } from '../../../src/deletion/execute/forget-plan.ts';
import type { DeletionAnswer } from '../../../src/service/delete/answer.ts';
import type { DeletionKind } from '../../../src/service/delete/outcomes.ts';
import type { Json } from '../airbyte/connector.ts';
import { Folders, quickClock } from './deletions.ts';

export const names = (count: number) => Array.from({ length: count }, (_, i) => `p${i}`);

export const answerOf = (kind: DeletionKind, code: string, remaining?: number, resetAt?: number): DeletionAnswer => ({
  kind,
  code,
  status: 200,
  message: 'the answer',
  limits: { remaining, resetAt },
});

export const done = () => answerOf('done', '20000');

type Answering = (id: string, nth: number, signal: AbortSignal) => DeletionAnswer | Promise<DeletionAnswer>;

/** Plans of lists of ids, with a clock whose time passes at once and a ledger in `folders`. */
export class Plans {
  readonly folders = new Folders();
  readonly events: LogEvent[] = [];
  /** What is to be called later, and was neither called nor taken back. */
  readonly timers: { readonly ms: number; readonly call: () => void }[] = [];
  readonly clock = quickClock();
  readonly stop = new AbortController();
  onLongSleep: () => void = () => {};

  get logged(): string[] {
    return this.events.map(({ message }) => message);
  }

  plan(ids: Iterable<unknown> | AsyncIterable<unknown>, isReal = true, more: Json = {}): Promise<ForgetPlan> {
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
    const all = (async function* () {
      yield* ids;
    })();
    return planForget(all, { config, io, isReal });
  }

  /** Deletes a list; `answer` is given the id and how often it was asked for. */
  async execute(ids: readonly unknown[], answer: Answering, more: Json = {}, onCompleted?: OnCompleted) {
    const asked: string[] = [];
    const real = await this.plan(ids, true, more);
    const deleteProfile = async (id: string, signal: AbortSignal) => {
      asked.push(id);
      return answer(id, asked.filter((one) => one === id).length, signal);
    };
    try {
      return { ...(await real.execute(real.hash, { deleteProfile }, onCompleted)), asked };
    } finally {
      real.close();
    }
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
