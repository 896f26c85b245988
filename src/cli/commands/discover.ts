import { discoverColumns } from '../../extract/discover-columns.ts';
import { extractDeps } from '../../extract/extract-deps.ts';
import { openExportClient } from '../../service/export/client.ts';
import { defineCommand, durationOption } from '../command.ts';
import { readConfiguration, requireExportKeys } from '../configuration.ts';

export const command = defineCommand({
  options: { maxWait: durationOption('Longest wait for the quota (30s, 20m, 1h)') },
  examples: ['discover > schema.json', 'discover --max-wait 10m'],
  docsPage: 'days-and-types.md',
  async run(values, context) {
    const config = requireExportKeys(readConfiguration(values.config, context));
    const service = openExportClient(config, context, { maxWaitMs: values.maxWait });
    try {
      const result = { v: 1, columns: await discoverColumns(config, extractDeps(config, service, context)) };
      return { result, lines: JSON.stringify(result, null, 2).split('\n') };
    } finally {
      await service.close();
    }
  },
});
