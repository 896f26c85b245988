// This folder: parts of the command `forget`: the ids, the deletion, the purge of what was loaded, questions to a
// ledger.

import { configFailure, EXIT, type ExitCode } from '../../base/errors.ts';
import { count } from '../../base/quantities.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { type ForgetPlan, planForget } from '../../deletion/execute/forget-plan.ts';
import { type DeletionReport, reportTable } from '../../deletion/execute/report.ts';
import type { Ledger } from '../../deletion/ledger/ledger.ts';
import type { LedgerOutput } from '../../deletion/ledger/output.ts';
import { createDeletionService } from '../../service/delete/client.ts';
import { flag, type Options, text } from '../command.ts';
import { loadDestinationConfig } from '../configuration.ts';
import type { Context } from '../context.ts';
import { idsOf } from './input.ts';
import { checkPurge, type PurgeRequest, purge, purgeRequest, resolvePeople } from './purge.ts';

/** Plans a deletion, or with `--execute --confirm HASH` carries it out and purges what was loaded. */
export async function forgetPeople(options: Options, context: Context): Promise<ExitCode> {
  const isReal = flag(options, 'execute');
  const confirm = text(options, 'confirm');
  if (isReal && confirm === undefined) {
    throw configFailure(
      '--execute needs --confirm HASH: run without --execute first, look at the plan, and repeat its hash.',
    );
  }
  const config = loadDestinationConfig(text(options, 'config'), context);
  const wanted = purgeRequest(options, context);
  const io = {
    clock: context.clock,
    random: context.random,
    logger: context.logger,
    signal: context.signal,
    lines: logLines(context),
  };
  const plan = await planForget(idsOf(options, context), { config, io, isReal });
  try {
    const found = wanted && (await findPeople(plan, wanted, context));
    if (!isReal || confirm === undefined) return printPlan(plan, found, options, context);
    if (wanted && found) await checkPurge(wanted, found.ids, context);
    return await executePlan(plan, confirm, config, { wanted, found, options, context });
  } finally {
    plan.close();
  }
}

interface PurgedPeople {
  readonly ids: readonly string[];
  readonly people: number;
  /** Number of ids that were not found there. */
  readonly unmatched: number;
}

async function findPeople(plan: ForgetPlan, wanted: PurgeRequest, context: Context): Promise<PurgedPeople> {
  const ids: string[] = [];
  for await (const id of plan.ids()) ids.push(id);
  const found = await resolvePeople(wanted, ids, context);
  for (const warning of found.warnings) context.logger.warn('purge.hashed', warning);
  const [matched, matchedWithoutId] = [found.ids.length, found.idsWithoutUnifiedId.length];
  if (matched === 0 && ids.length > 0) {
    context.logger.warn(
      'purge.nobody',
      `None of these IDs was found by ${wanted.mapping === undefined ? '--purge-column' : '--mapping'}: no rows would be removed from ${wanted.path}.`,
    );
  }
  if (matchedWithoutId > 0 && wanted.suppressionFile !== undefined) {
    context.logger.warn(
      'purge.unnamed',
      `${count(matchedWithoutId, 'ID')} of these stand in rows without a df_unified_id, by which alone the suppression list knows people: a later sync may bring such rows back while the service still exports them.`,
    );
  }
  return { ids, people: found.people, unmatched: new Set(ids).size - matched };
}

interface Execution {
  readonly wanted: PurgeRequest | undefined;
  readonly found: PurgedPeople | undefined;
  readonly options: Options;
  readonly context: Context;
}

async function executePlan(
  plan: ForgetPlan,
  confirm: string,
  config: DestinationConfig,
  run: Execution,
): Promise<ExitCode> {
  const { wanted, found, options, context } = run;
  const deleter = createDeletionService({ ...config, clock: context.clock, logger: context.logger, env: context.env });
  let purged: object | undefined;
  try {
    const { report, failure } = await plan.execute(confirm, deleter, async (ledger) => {
      if (wanted && found) purged = await purgeAfter(wanted, found, ledger, context);
    });
    const counted = found === undefined ? {} : { ids_without_match: found.unmatched };
    printReport(report, purged === undefined ? {} : { purged, ...counted }, options, context);
    if (wanted && purged !== undefined && wanted.suppressionFile === undefined) {
      context.logger.warn(
        'purge.unsuppressed',
        'Without --suppression-file the next sync may bring the rows back while the service still exports them.',
      );
    }
    if (failure !== undefined) throw failure;
    return EXIT.done;
  } catch (error) {
    if (plan.report.guard !== null) printReport(plan.report, { hash: plan.hash }, options, context);
    throw error;
  } finally {
    await deleter.close();
  }
}

/** Who reads that a purge failed must know what was done before it and cannot be taken back. */
async function purgeAfter(
  wanted: PurgeRequest,
  { ids }: PurgedPeople,
  ledger: Pick<Ledger, 'purge'>,
  context: Context,
): Promise<object> {
  try {
    return await purge(wanted, ids, ledger, context);
  } catch (error) {
    context.logger.warn(
      'purge.open',
      `The deletion at the service is done, the purge of ${wanted.path} is not: run again with the same list to do it; who is deleted there is not asked for again.`,
    );
    throw error;
  }
}

function printPlan(plan: ForgetPlan, found: PurgedPeople | undefined, options: Options, context: Context): ExitCode {
  const people = found === undefined ? {} : { people_to_purge: found.people, ids_without_match: found.unmatched };
  printReport(plan.report, { hash: plan.hash, ...people }, options, context);
  if (plan.report.guard !== null) context.logger.warn('forget.guard', plan.report.guard);
  context.logger.warn(
    'forget.plan',
    `Nothing was deleted. To delete exactly this list: --execute --confirm ${plan.hash}`,
  );
  return EXIT.done;
}

function printReport(
  report: DeletionReport,
  more: Readonly<Record<string, unknown>>,
  options: Options,
  { terminal }: Context,
): void {
  if (flag(options, 'json')) {
    terminal.result(JSON.stringify({ ...report, ...more }));
    return;
  }
  for (const line of reportTable(report).split('\n')) terminal.result(line);
  for (const [name, value] of Object.entries(more)) {
    terminal.result(
      `${name.replaceAll('_', ' ')}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`,
    );
  }
}

/** Without a folder the ledger's lines are written to stderr at any log level; a line that cannot be written is a failure. */
function logLines({ terminal }: Context): LedgerOutput {
  return {
    async write(lines) {
      await terminal.record(lines.join('\n'));
    },
    async close() {},
  };
}
