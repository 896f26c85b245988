import { EXIT } from '../../base/errors.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import { checkService } from '../../service/check.ts';
import { defineCommand } from '../command.ts';
import { readConfiguration, requireExportKeys } from '../configuration.ts';

const EXIT_OF_VERDICT = { usable: EXIT.done, config: EXIT.usage, later: EXIT.later };

export const command = defineCommand({
  examples: ['check', 'check --config staging.json'],
  docsPage: 'configuration.md',
  async run({ config: path }, context) {
    const config = requireExportKeys(readConfiguration(path, context));
    // What a sync could not use fails here, too.
    SuppressionList.of(config)?.readFilter(config);
    const { kind, code, message: text, quotaReport } = await checkService(config, context);
    const message = context.redactor.mask(text);
    const { remaining = null, resetAt } = quotaReport;
    const reset_at = resetAt === undefined ? null : new Date(resetAt).toISOString();
    const result = { v: 1, usable: kind === 'usable', code, message, remaining, reset_at };
    return { result, lines: [message], exitCode: EXIT_OF_VERDICT[kind] };
  },
});
