import { parseSourceConfig } from '../../config/source.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import { checkService } from '../../service/check.ts';
import { readConfig, type Verb } from '../protocol/connector.ts';
import { connectionStatusMessage } from '../protocol/messages.ts';

/**
 * The verb `check`: one export shows if the service can be used. It can with an exhausted quota, too. Before it, a
 * suppression list that `read` could not use is a failure.
 */
export const check: Verb = async (context) => {
  const config = readConfig(parseSourceConfig, context);
  SuppressionList.of(config)?.readFilter(config);
  const { kind, code, message } = await checkService(config, context);
  context.logger.debug('check.verdict', message, { kind, code });
  return connectionStatusMessage(kind === 'usable' ? 'SUCCEEDED' : 'FAILED', context.redactor.mask(message));
};
