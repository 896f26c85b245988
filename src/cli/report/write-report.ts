import manifest from '../../../package.json' with { type: 'json' };
import { dayAt } from '../../base/days.ts';
import { replaceFile } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import type { TargetReport } from '../../sinks/report.ts';
import type { Context } from '../context.ts';
import type { ReportedDeletions } from './deletions.ts';
import { reportPage } from './page.ts';

/** The page holds counts alone, and those who read it may be other users. */
const PAGE_PERMISSIONS = 0o644;

export interface ReportRequest {
  /** What is reported on, as the command line names it. */
  readonly target: string;
  /** Path of the page. */
  readonly output: string;
  /** How many days back the service exports. */
  readonly historyDays: number;
  readonly deletions?: ReportedDeletions | undefined;
}

/** Writes the page of a target; returns its bytes. Throws a Failure where it cannot be written. */
export async function writeReport(found: TargetReport, request: ReportRequest, { clock }: Context): Promise<number> {
  const now = clock.now();
  const made = { madeAt: new Date(now).toISOString(), today: dayAt(now), version: manifest.version };
  const page = await reportPage(found, { ...request, ...made });
  try {
    await replaceFile(request.output, page, PAGE_PERMISSIONS);
  } catch (error) {
    throw diskFailure(error, { what: `the report ${request.output}`, path: request.output });
  }
  return Buffer.byteLength(page);
}
