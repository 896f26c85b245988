// This folder: the Airbyte source, one verb a file but `check`, whose work `service` does. `read` first reads the
// profiles (`profiles-stream.ts`). It plans each stream of events (`stream-plans.ts`), and downloads each day that one
// of them wants once. `event-streams.ts` gives the day to its streams, `event-stream.ts` is one of them.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import { configError } from '../../base/errors.ts';
import { type Connector, openConfig } from '../protocol/connector.ts';

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
    return async (value, context) => {
      const config = openConfig(parseSourceConfig(value, context.env), context);
      const { usable, kind, code, message } = await checkService(config, context);
      context.logger.debug('check.verdict', message, { kind, code });
      if (!usable) throw configError(message);
      return message;
    };
  },
  discover: async () => (await import('./discover.ts')).discover,
  read: async () => (await import('./read.ts')).read,
};
