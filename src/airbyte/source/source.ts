// This folder: the Airbyte source, one verb a file but `check`, whose work `service` does. `read.ts` opens the service
// and reads the profiles (`read-profiles.ts`), then the days (`read-events.ts`). `stream-plans.ts` decides the days of a
// stream, `event-stream.ts` is one while it is read. `stream-output.ts` tells the platform of it.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import { configError } from '../../base/errors.ts';
import type { Connector } from '../protocol/connector.ts';
import { openConfig } from '../protocol/open-config.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/source-dfinery';

/** The Airbyte source. Each verb is loaded when it is called. */
export const source: Connector = {
  spec: {
    documentationUrl: `${DOCUMENTATION}/README.md`,
    changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
    protocol_version: '0.2.0',
    supportsIncremental: true,
    connectionSpecification: schema,
  },
  async check() {
    const { checkService } = await import('../../service/check.ts');
    const { parseSourceConfig } = await import('../../config/source.ts');
    // An exhausted quota is reported as such, not as a fault of the configuration.
    return async (rawConfig, context) => {
      const config = openConfig(parseSourceConfig(rawConfig, context.env), context);
      const { usable, kind, code, message } = await checkService(config, context);
      context.logger.debug('check.verdict', message, { kind, code });
      if (!usable) throw configError(message);
      return message;
    };
  },
  discover: async () => (await import('./discover.ts')).discover,
  read: async () => (await import('./read.ts')).read,
};
