import { type CheckVerb, openConfig } from '../airbyte/connector.ts';
import { configError } from '../base/errors.ts';
import { parseSourceConfig } from '../config/source.ts';
import { openQuota } from '../extract/session.ts';
import { probeExport } from './probe.ts';

/** The `check` verb: one smallest export. An exhausted quota is reported as such, not as a fault of the configuration. */
export const checkVerb: CheckVerb = async (value, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const { clock, logger, env, signal } = context;
  const quota = openQuota(config, context);
  try {
    const verdict = await probeExport({ ...config, clock, logger, env, quota }, signal);
    logger.debug('check.verdict', verdict.message, { kind: verdict.kind, code: verdict.code });
    if (!verdict.usable) throw configError(verdict.message);
    return verdict.message;
  } finally {
    await quota.close();
  }
};
