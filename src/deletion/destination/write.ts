import type { VerbContext, WriteVerb } from '../../airbyte/connector.ts';
import type { JsonObject } from '../../airbyte/input.ts';
import type { StreamDescriptor } from '../../airbyte/messages.ts';
import { formatDuration } from '../../base/durations.ts';
import { configFailure } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { createDeletionService } from '../../service/delete/client.ts';
import { DeletionRun, requireLedger } from '../execute/deletion-run.ts';
import { guard } from '../execute/guard.ts';
import { type DeletionReport, nothingAccepted, refusedSentence, reportTable } from '../execute/report.ts';
import { type InputMessage, readMessages } from '../input/messages.ts';
import { LogOutput } from '../ledger/output.ts';
import { planStreams, type StreamPlan, type StreamPlans } from './catalog.ts';
import { parsed, warnOfUnknown } from './configured.ts';
import { stateLine } from './state-line.ts';

/** A CDC source sets this column on a row that was deleted there, which withdraws the deletion request. */
const WITHDRAWN = '_ab_cdc_deleted_at';

/** The verb `write` of the Airbyte destination: stages the whole input, checks the guard, deletes, and returns each state once its rows are decided. */
export const write: WriteVerb = async (value, catalog, input, context) => {
  const { logger } = context;
  const { config, unknown } = parsed(value, context);
  if (config.dryRun) logger.warn('erase.dry_run', 'DRY RUN: nothing will be deleted and no state will be saved.');
  warnOfUnknown(unknown, context);
  const plans = planStreams(catalog, config);
  if (!config.dryRun) requireLedger(config);
  const { clock, random, signal, writer } = context;
  const runContext = { clock, random, logger, signal, lines: new LogOutput(writer) };
  const run = await DeletionRun.open(config, runContext, !config.dryRun);
  try {
    await stage(run, plans, input, context);
    const plan = await run.seal();
    logRefused(plan, context);
    const nothing = nothingAccepted(plan);
    if (nothing) throw nothing;
    if (config.dryRun) return logDryRun(plan, config, context);
    guard(plan.ids - plan.done_before, config);
    logStart(plan, config, context);
    await deleteAll(run, config, context);
  } finally {
    run.close();
  }
};

async function stage(
  run: DeletionRun,
  plans: StreamPlans,
  input: AsyncIterable<Uint8Array>,
  { logger, signal }: VerbContext,
): Promise<void> {
  const onUnknown = (line: number) =>
    logger.warn('input.unknown', `Line ${line} of the input is a message of an unknown type; it is skipped.`);
  for await (const messages of readMessages(input, onUnknown)) {
    signal.throwIfAborted();
    for (const message of messages) take(run, plans, message);
  }
}

function take(run: DeletionRun, plans: StreamPlans, message: InputMessage): void {
  const plan = message.stream && planOf(plans, message.stream, message.line);
  if (message.kind === 'state') run.addState(plan?.index, message.text);
  else if (plan && isWithdrawn(message.data)) run.addWithdrawn(plan.index, own(message.data, plan.idField));
  else if (plan) run.addRow(plan.index, own(message.data, plan.idField));
}

function planOf(plans: StreamPlans, stream: StreamDescriptor, line: number): StreamPlan {
  const plan = plans(stream);
  if (plan) return plan;
  throw configFailure(
    `Nothing was deleted: line ${line} of the input is of the stream ${JSON.stringify(stream.name)}, which the connection does not have.`,
    { where: { row: line } },
  );
}

const isWithdrawn = (data: JsonObject): boolean => (own(data, WITHDRAWN) ?? null) !== null;

const own = (data: JsonObject, key: string): unknown => (Object.hasOwn(data, key) ? data[key] : undefined);

function logRefused(plan: DeletionReport, { logger }: VerbContext): void {
  const refused = refusedSentence(plan);
  if (refused !== undefined) logger.warn('erase.refused', `${refused}.`, { ...plan.refused });
}

function logDryRun(plan: DeletionReport, config: DestinationConfig, { logger }: VerbContext): void {
  const count = plan.ids - plan.done_before;
  for (const line of reportTable(plan).split('\n')) logger.info('erase.report', line);
  if (plan.guard !== null) logger.warn('erase.guard', `A real run would stop before its first deletion: ${plan.guard}`);
  const refused = refusedSentence(plan);
  if (config.onRejected === 'fail' && refused !== undefined) {
    throw configFailure(`on_rejected is "fail": ${refused}. Nothing was deleted (dry run).`);
  }
  logger.warn(
    'erase.dry_run',
    `DRY RUN: nothing was deleted. ${count} profiles would be; the platform may show their rows as synced all the same. Set dry_run to false to delete.`,
  );
}

function logStart(plan: DeletionReport, { requestsPerMinute }: DestinationConfig, { logger }: VerbContext): void {
  const count = plan.ids - plan.done_before;
  const resumed = plan.done_before > 0 ? ` (${plan.done_before} were done by the unfinished run before)` : '';
  const about = formatDuration((count * 60_000) / requestsPerMinute);
  logger.info('erase.begin', `Deleting ${count} profiles${resumed}: about ${about} at ${requestsPerMinute} a minute.`);
}

async function deleteAll(run: DeletionRun, config: DestinationConfig, context: VerbContext): Promise<void> {
  const { clock, env, logger, writer } = context;
  const deleter = createDeletionService({ ...config, clock, logger, env });
  try {
    const { report, failure } = await run.execute(deleter, (text, stats) => writer.writeLine(stateLine(text, stats)));
    for (const line of reportTable(report).split('\n')) logger.info('erase.report', line);
    if (report.head !== null) logger.info('ledger.head', `Head of the ledger: ${report.head}`, { head: report.head });
    if (failure) throw failure;
  } finally {
    await deleter.close();
  }
}
