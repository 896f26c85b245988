import type { DiscoverVerb } from '../airbyte/connector.ts';
import { catalog } from '../airbyte/messages.ts';
import { discoverColumns } from './columns.ts';
import { streamsOf } from './streams.ts';
import { depsOf, openConfig, openService } from './world.ts';

/** The `discover` verb: the streams, with the type of every column of the history. */
export const discoverVerb: DiscoverVerb = async (value, context) => {
  const config = openConfig(value, context);
  const service = openService(config, context, () => {});
  try {
    const columns = await discoverColumns(config, depsOf(config, context, service));
    return catalog(streamsOf(columns, config.timezone !== undefined));
  } finally {
    await service.close();
  }
};
