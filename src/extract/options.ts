import type { SourceConfig } from '../config/source.ts';
import { loadSuppression } from '../suppression/list.ts';
import type { ExtractOptions } from './ports.ts';

/** What a configuration says of how to extract. Reads the suppression file; throws Failure when it cannot. */
export function extractOptionsOf(config: SourceConfig): ExtractOptions {
  const { suppressionFile: file, suppressionKey: key } = config;
  return {
    maxConcurrentExports: config.maxConcurrentExports,
    emptyBody: config.emptyBody,
    timezone: config.timezone,
    ...(file !== undefined && key !== undefined && { suppression: loadSuppression(file, key) }),
  };
}
