import { EXIT } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Logger } from '../../base/log.ts';
import { unseparatedCount } from '../../base/quantities.ts';
import { type DestinationConfig, parseDestinationConfig } from '../../config/destination.ts';
import { runErasure } from '../../erasure/erasure.ts';
import { type ErasureReport, reportLines } from '../../erasure/erasure-report.ts';
import { IdList } from '../../erasure/list/id-list.ts';
import { DeletionClient } from '../../service/deletion-client.ts';
import { readConfig, type Verb } from '../protocol/connector.ts';
import { checkIdStreams } from './id-streams.ts';
import { inputMessages } from './input-messages.ts';
import { StateQueue } from './state-queue.ts';

/** A CDC source sets this column on a row that was deleted there, which withdraws the request. */
const CDC_DELETED_AT = '_ab_cdc_deleted_at';

/** The verb `write`: erases the people of the rows. Echoes each state once its rows are decided; a dry run, none. */
export const write: Verb = async (context) => {
  const { catalog, clock, env, logger, writer } = context;
  const config = readConfig(parseDestinationConfig, context);
  const idList = new IdList();
  const queue = new StateQueue(idList, writer);
  let rowNumber = 0;
  for await (const message of inputMessages(context)) {
    if (message.type === 'STATE') queue.add(message);
    else {
      // A sync without rows deletes nobody: one that clears the connection has streams of any mode.
      if (rowNumber === 0) checkIdStreams(catalog, config);
      queue.add({ type: 'ROW', key: message.key, id: applyRow(idList, message.data, ++rowNumber, config) });
    }
  }
  const deleter = new DeletionClient({ ...config, clock, env });
  try {
    const { report, failure } = await runErasure({
      settings: config,
      runtime: context,
      list: idList,
      consent: config.dryRun ? 'none' : 'configured',
      requestSettings: { ...config, deleter, again: false },
      purgeSettings: undefined,
      isOnPlatform: true,
      onDecided(id, decision) {
        queue.decide(id, decision);
        // As long as the service rejects every ID, the field may be wrong, and the rows must come again.
        if (decision === 'done') queue.echoDecided();
      },
    });
    for (const warning of report.warnings) logger.warn('erase.plan', warning);
    if (config.dryRun) {
      logReport(report, logger);
      // A guard is no failure here: a dry run is there to show it.
      if (failure === undefined || failure.exitCode === EXIT.guard) return warnOfDryRun(report, logger);
    } else if (report.mode === 'executed') {
      // After a wrong token, service or field the rows must come again.
      if (failure?.exitCode !== EXIT.usage) queue.echoDecided();
      await writer.drain();
      logReport(report, logger);
    }
    if (failure !== undefined) throw failure;
  } finally {
    await deleter.close();
  }
};

/** Adds the person of a row to the list, or withdraws the request. Returns the id; undefined for a refused row. */
function applyRow(idList: IdList, data: JsonObject, rowNumber: number, config: DestinationConfig) {
  const { externalIdField, requestedAtField: timeField } = config;
  const id = ownValue(data, externalIdField);
  if ((ownValue(data, CDC_DELETED_AT) ?? null) !== null) return idList.withdraw({ rowNumber, id });
  return idList.add({ rowNumber, id, requestedAt: timeField === undefined ? undefined : ownValue(data, timeField) });
}

const ownValue = (data: JsonObject, key: string): unknown => (Object.hasOwn(data, key) ? data[key] : undefined);

/** Says what a real run would do. */
function warnOfDryRun({ guard, to_request: count }: ErasureReport, logger: Logger): undefined {
  if (guard !== null) logger.warn('erase.guard', `A real run would stop before its first deletion: ${guard}`);
  logger.warn(
    'erase.dry_run',
    `DRY RUN: nothing was deleted, and no state is saved. ${unseparatedCount(count, 'profile')} would be deleted. ` +
      'The platform may show their rows as synced all the same. Set dry_run to false to delete.',
  );
}

function logReport(report: ErasureReport, logger: Logger): void {
  for (const line of reportLines(report)) logger.info('erase.report', line);
}
