import { formatDuration } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Logger } from '../../base/log.ts';
import { plainCount } from '../../base/quantities.ts';
import { type DestinationConfig, parseDestinationConfig } from '../../config/destination.ts';
import { runDeletionCase } from '../../erasure/case.ts';
import type { DeletionList } from '../../erasure/input/deletion-list.ts';
import { withMember } from '../../erasure/input/json-member.ts';
import { type InputMessage, readMessages } from '../../erasure/input/messages.ts';
import type { LedgerOutput } from '../../erasure/ledger/line.ts';
import {
  type DeletionReport,
  idsToRequest,
  nothingAccepted,
  refusedSentence,
  reportTable,
} from '../../erasure/report.ts';
import { DeletionClient } from '../../service/delete/client.ts';
import { openConfig, type VerbContext, type WriteVerb } from '../protocol/connector.ts';
import { log, type StateStats, type StreamDescriptor } from '../protocol/messages.ts';
import type { MessageWriter } from '../protocol/writer.ts';
import { type InputStream, type InputStreams, inputStreams } from './catalog.ts';

/** A CDC source sets this column on a row that was deleted there, which withdraws the deletion request. */
const WITHDRAWN = '_ab_cdc_deleted_at';

/**
 * The verb `write` of the Airbyte destination: runs the case of a deletion, and returns each state once its rows are
 * decided.
 */
export const write: WriteVerb = async (value, catalog, input, context) => {
  const { clock, env, logger, random, signal, writer } = context;
  const parsed = parseDestinationConfig(value, env);
  // The first message of a dry run is a warning: the platform shows the rows as synced.
  if (parsed.config.dryRun)
    logger.warn('erase.dry_run', 'DRY RUN: nothing will be deleted and no state will be saved.');
  const config = openConfig(parsed, context);
  const streams = inputStreams(catalog, config);
  const deleter = new DeletionClient({ ...config, clock, env });
  try {
    const { report, failure } = await runDeletionCase({
      config,
      io: { clock, random, logger, signal, lines: logOutput(writer) },
      consent: config.dryRun ? undefined : 'configured',
      deleter,
      read: (list) => readInput(input, context, (message) => addMessage(list, streams, message, config.maxIdLength)),
      emitState: (text, stats) => writer.writeLine(stateLine(text, stats)),
      onBegin: (forecast) => logStart(forecast, config, logger),
    });
    if (config.dryRun) logDryRun(report, config, logger);
    else if (report.mode === 'dry_run') logRefused(report, logger);
    else {
      logReport(report, logger);
      if (report.head !== null) logger.info('ledger.head', `Head of the ledger: ${report.head}`, { head: report.head });
    }
    if (failure !== undefined) throw failure;
  } finally {
    await deleter.close();
  }
};

/** Writes the ledger's lines as LOG messages, for a container without persistent files. */
const logOutput = (writer: MessageWriter): LedgerOutput => ({
  async write(lines) {
    for (const line of lines) await writer.write(log('INFO', line, { event: 'ledger.line' }));
    await writer.drain();
  },
  async close() {},
});

/** The STATE message that returns a state: its text unchanged, plus the counts of its rows. */
const stateLine = (state: string, stats: Required<StateStats>): string =>
  `{"type":"STATE","state":${withMember(state, 'destinationStats', JSON.stringify(stats))}}`;

async function readInput(
  input: AsyncIterable<Uint8Array>,
  { logger, signal }: VerbContext,
  add: (message: InputMessage) => void,
): Promise<void> {
  const onUnknown = (line: number) =>
    logger.warn('input.unknown', `Line ${line} of the input is a message of an unknown type; it is skipped.`);
  for await (const messages of readMessages(input, onUnknown)) {
    signal.throwIfAborted();
    for (const message of messages) add(message);
  }
}

function addMessage(list: DeletionList, streams: InputStreams, message: InputMessage, maxIdLength: number): void {
  const stream = message.stream && streamOf(streams, message.stream, message.line);
  if (message.kind === 'state') list.addState(stream?.index, message.text);
  else if (stream === undefined) return;
  else {
    const id = ownValue(message.data, stream.idField);
    if (isWithdrawn(message.data)) list.addWithdrawn(stream.index, typeof id === 'string' ? id : undefined);
    else list.addRow(stream.index, id, maxIdLength);
  }
}

function streamOf(streams: InputStreams, named: StreamDescriptor, line: number): InputStream {
  const stream = streams(named);
  if (stream) return stream;
  throw configError(
    `Nothing was deleted: line ${line} of the input is of the stream ${JSON.stringify(named.name)}, which the connection does not have.`,
    { where: { row: line } },
  );
}

const isWithdrawn = (data: JsonObject): boolean => (ownValue(data, WITHDRAWN) ?? null) !== null;

const ownValue = (data: JsonObject, key: string): unknown => (Object.hasOwn(data, key) ? data[key] : undefined);

function logRefused(report: DeletionReport, logger: Logger): void {
  const refused = refusedSentence(report);
  if (refused !== undefined) logger.warn('erase.refused', `${refused}.`, { ...report.refused });
}

/** Logs the report line by line, since one message of a log is one line. */
function logReport(report: DeletionReport, logger: Logger): void {
  for (const line of reportTable(report).split('\n')) logger.info('erase.report', line);
}

function logDryRun(forecast: DeletionReport, config: DestinationConfig, logger: Logger): void {
  logRefused(forecast, logger);
  const nothing = nothingAccepted(forecast, config);
  if (nothing) throw nothing;
  logReport(forecast, logger);
  if (forecast.guard !== null)
    logger.warn('erase.guard', `A real run would stop before its first deletion: ${forecast.guard}`);
  const refused = refusedSentence(forecast);
  if (config.onRejected === 'fail' && refused !== undefined) {
    throw configError(`on_rejected is "fail": ${refused}. Nothing was deleted (dry run).`);
  }
  logger.warn(
    'erase.dry_run',
    `DRY RUN: nothing was deleted. ${plainCount(idsToRequest(forecast), 'profile')} would be; the platform may show ` +
      'their rows as synced all the same. Set dry_run to false to delete.',
  );
}

function logStart(forecast: DeletionReport, { requestsPerMinute }: DestinationConfig, logger: Logger): void {
  logRefused(forecast, logger);
  const count = idsToRequest(forecast);
  const resumed = forecast.done_before > 0 ? ` (${forecast.done_before} were done by the unfinished run before)` : '';
  const about = formatDuration((count * 60_000) / requestsPerMinute);
  logger.info(
    'erase.begin',
    `Deleting ${plainCount(count, 'profile')}${resumed}: about ${about} at ${requestsPerMinute} a minute.`,
  );
}
