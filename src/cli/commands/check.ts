import { EXIT } from '../../base/errors.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import { checkService } from '../../service/check.ts';
import { defineCommand } from '../command.ts';
import { readConfiguration, requireExportKeys } from '../configuration.ts';
import type { Context } from '../context.ts';

const EXIT_OF_VERDICT = { usable: EXIT.done, config: EXIT.usage, later: EXIT.later };

export const command = defineCommand({
  examples: ['check', 'check --config staging.json'],
  docsPage: 'configuration.md',
  async run({ config: path }, context) {
    const { kind, code, message, exitCode, quotaReport } = await tryConfiguration(path, context);
    const { remaining = null, resetAt } = quotaReport;
    const reset_at = resetAt === undefined ? null : new Date(resetAt).toISOString();
    const result = { v: 1, usable: kind === 'usable', code, message, remaining, reset_at };
    return { result, lines: [message], exitCode };
  },
});

/** What the service says to a configuration. Throws for one that no sync could use. */
export async function tryConfiguration(path: string | undefined, context: Context) {
  const config = requireExportKeys(readConfiguration(path, context));
  // What a sync could not use fails here, too.
  SuppressionList.of(config)?.readFilter(config);
  const verdict = await checkService(config, context);
  const message = context.redactor.mask(verdict.message);
  return { ...verdict, message, exitCode: EXIT_OF_VERDICT[verdict.kind] };
}
