import { type DiscoverVerb, openConfig } from '../airbyte/connector.ts';
import { parseSourceConfig } from '../config/source.ts';
import { extractDeps, openExportSession } from '../extract/session.ts';
import { discoverColumns } from './columns.ts';
import { streamsOf } from './streams/streams.ts';

/** The `discover` verb: the streams, with the type of every column of the history. */
export const discoverVerb: DiscoverVerb = async (value, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const session = openExportSession(config, context);
  try {
    const columns = await discoverColumns(config, extractDeps(config, session.service, context));
    return { type: 'CATALOG', catalog: { streams: streamsOf(columns, config.timezone !== undefined) } };
  } finally {
    await session.close();
  }
};
