import { configError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { type ColumnType, isColumnType } from '../../cells/types/codec.ts';
import { discoverColumns } from '../../extract/discover.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { readJsonFile } from '../../fs/named-file.ts';
import { defineCommand, duration } from '../command.ts';
import { EXPORT_KEYS, readConfiguration, requireKeys } from '../configuration.ts';

export const command = defineCommand({
  options: {
    maxWait: duration('Longest wait for the quota (30s, 20m, 1h)'),
  },
  examples: ['discover > schema.json', 'discover --max-wait 10m'],
  docsPage: 'days-and-types.md',
  async run(values, context) {
    const config = requireKeys(readConfiguration(values.config, context), ...EXPORT_KEYS);
    const service = openExportClient(config, context, { maxWaitMs: values.maxWait });
    try {
      const columns = await discoverColumns(config, extractDeps(config, service, context));
      const result = { v: 1, columns };
      return { result, lines: JSON.stringify(result, null, 2).split('\n') };
    } finally {
      await service.close();
    }
  },
});

/** The types by source name of a pinned schema file, as `discover` prints it; undefined where none is given. */
export function pinnedTypes(path: string | undefined): ReadonlyMap<string, ColumnType> | undefined {
  if (path === undefined) return undefined;
  const value = readJsonFile(path, 'the schema file');
  const problem = (what: string) =>
    configError(`the schema file ${path} ${what}: make one with dfinery-elt discover.`, { where: { file: path } });
  if (!isObject(value) || !Array.isArray(value.columns)) throw problem('has no list "columns"');
  if ('v' in value && value.v !== 1) throw problem('is of a newer version');
  const types = new Map<string, ColumnType>();
  for (const [i, column] of value.columns.entries()) {
    const { source, type } = column ?? {};
    if (typeof source !== 'string' || !isColumnType(type))
      throw problem(`has no source name and type in entry ${i + 1}`);
    types.set(source, type);
  }
  return types;
}
