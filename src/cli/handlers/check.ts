import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { openQuota } from '../../extract/session.ts';
import { PROBE_COST, type ProbeKind, type ProbeVerdict, probeExport } from '../../source/probe.ts';
import { flag, type Handler, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
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
/** Out of reach, and no time will mend it. */
const NEVER_REACHED = new Set(['certificate', 'proxy']);

/** The exit code of a verdict. What proves neither fault nor success is done, unless it was a failure to be tried again. */
export function exitOf({ kind, usable, code }: Pick<ProbeVerdict, 'kind' | 'usable' | 'code'>): ExitCode {
  if (NEVER_REACHED.has(code)) return EXIT.usage;
  return kind === 'inconclusive' && !usable ? EXIT.later : EXITS[kind];
}

export const check: Handler = async (options, context) => {
  const config = loadSourceConfig(text(options, 'config'), context);
  const { verdict, said, code } = await checkSource(config, context);
  context.terminal.result(flag(options, 'json') ? JSON.stringify(verdict) : said);
  return code;
};

/** Spends one export on the question; `said` is for people, `verdict` for scripts. */
export async function checkSource(config: SourceConfig, context: Context) {
  const { clock, logger, env, signal, redactor } = context;
  const quota = openQuota(config, context);
  logger.info('check.cost', PROBE_COST);
  try {
    const found = await probeExport({ ...config, clock, logger, env, quota }, signal);
    const { kind, usable, limits } = found;
    const said = redactor.mask(found.message);
    const resetAt = limits.resetAt === undefined ? null : new Date(limits.resetAt).toISOString();
    const verdict = { v: 1, kind, usable, message: said, remaining: limits.remaining ?? null, reset_at: resetAt };
    return { verdict, said, code: exitOf(found) };
  } finally {
    await quota.close();
  }
}
