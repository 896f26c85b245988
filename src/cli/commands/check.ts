import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { type CheckVerdict, checkService } from '../../service/check.ts';
import { defineCommand } from '../command.ts';
import { EXPORT_KEYS, readConfiguration, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';

const EXIT_OF_VERDICT: Readonly<Record<CheckVerdict['kind'], ExitCode>> = {
  usable: EXIT.done,
  config: EXIT.usage,
  later: EXIT.later,
};

export const command = defineCommand({
  options: {},
  examples: ['check', 'check --config staging.json'],
  docsPage: 'configuration.md',
  async run({ config: path }, context) {
    const config = requireKeys(readConfiguration(path, context), ...EXPORT_KEYS);
    const { verdict, exit } = await checkSource(config, context);
    return { result: verdict, lines: [verdict.message], exit };
  },
});

/** Makes the check, which costs an export. */
export async function checkSource(config: SourceConfig, context: Context) {
  const { kind, code, message, limits } = await checkService(config, context);
  const verdict = {
    v: 1,
    usable: kind === 'usable',
    code,
    message: context.redactor.mask(message),
    remaining: limits.remaining ?? null,
    reset_at: limits.resetAt === undefined ? null : new Date(limits.resetAt).toISOString(),
  };
  return { verdict, exit: EXIT_OF_VERDICT[kind] };
}
