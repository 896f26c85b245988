import { parseSourceConfig } from '../../config/source.ts';
import { discoverColumns } from '../../extract/discover.ts';
import { extractDeps, openExportClient } from '../../extract/session.ts';
import { type DiscoverVerb, openConfig } from '../protocol/connector.ts';
import { profileColumns } from './profiles-stream.ts';
import { profilesStream, streamsOf } from './schemas.ts';

/** Longest wait for the quota (ms): who configures a connection waits for its schema. */
const MAX_WAIT_MS = 30_000;

export const discover: DiscoverVerb = async (value, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const service = openExportClient(config, context, { maxWaitMs: MAX_WAIT_MS });
  try {
    const deps = extractDeps(config, service, context);
    const asInstants = config.timezone !== undefined;
    const streams = streamsOf(await discoverColumns(config, deps), asInstants);
    if (!config.userProfiles) return { type: 'CATALOG', catalog: { streams } };
    const profiles = profilesStream(await profileColumns(config, service, deps), asInstants);
    return { type: 'CATALOG', catalog: { streams: [...streams, profiles] } };
  } finally {
    await service.close();
  }
};
