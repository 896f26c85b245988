import { configError } from '../../base/errors.ts';
import { parseSourceConfig } from '../../config/source.ts';
import { checkService } from '../../service/check.ts';
import type { CheckVerb } from '../protocol/connector.ts';
import { openConfig } from '../protocol/open-config.ts';

/** The verb `check`: one export shows if the service can be used. `isUsable` is true for an exhausted quota, too. */
export const check: CheckVerb = async (rawConfig, context) => {
  const config = openConfig(parseSourceConfig(rawConfig, context.env), context);
  const { isUsable, kind, code, message } = await checkService(config, context);
  context.logger.debug('check.verdict', message, { kind, code });
  if (!isUsable) throw configError(message);
  return message;
};
