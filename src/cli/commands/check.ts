import { checkService, type ProbeKind, type ProbeVerdict } from '../../airbyte/source/check.ts';
import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { defineCommand } from '../command.ts';
import { Configuration } from '../configuration.ts';
import type { Context } from '../context.ts';

const EXITS: Readonly<Record<ProbeKind, ExitCode>> = {
  ok: EXIT.done,
  ok_no_events: EXIT.done,
  quota_spent: EXIT.done,
  inconclusive: EXIT.done,
  wrong_token: EXIT.usage,
  wrong_service: EXIT.usage,
  not_this_service: EXIT.usage,
  unreachable: EXIT.later,
};
/** Failures to reach the service that a later try does not change. */
const PERMANENT_CODES = new Set(['certificate', 'proxy']);

/** A verdict that proves neither a fault nor a success counts as a success, unless a later attempt may prove more. */
export function exitOf({ kind, usable, code }: Pick<ProbeVerdict, 'kind' | 'usable' | 'code'>): ExitCode {
  if (PERMANENT_CODES.has(code)) return EXIT.usage;
  return kind === 'inconclusive' && !usable ? EXIT.later : EXITS[kind];
}

export const command = defineCommand({
  options: {},
  examples: ['check', 'check --config staging.json'],
  page: 'configuration.md',
  async run({ config: path }, context) {
    const config = new Configuration(path, context).source();
    const { verdict, sentence, code } = await checkSource(config, context);
    return { result: verdict, lines: [sentence], exit: code };
  },
});

/** Makes the check, which costs an export; `sentence` is for people, `verdict` for scripts. */
export async function checkSource(config: SourceConfig, context: Context) {
  const found = await checkService(config, context);
  const { kind, usable, limits } = found;
  const sentence = context.redactor.mask(found.message);
  const resetAt = limits.resetAt === undefined ? null : new Date(limits.resetAt).toISOString();
  const verdict = { v: 1, kind, usable, message: sentence, remaining: limits.remaining ?? null, reset_at: resetAt };
  return { verdict, sentence, code: exitOf(found) };
}
