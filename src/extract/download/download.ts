// This folder: from planned days to verified files: requests with retries, split where they are too large.

import type { Day } from '../../base/days.ts';
import type { DayRange } from '../plan/day-ranges.ts';
import type { Run } from './run.ts';
import { rowsSent, type Verified } from './verified.ts';

/*
 * The results that a download passes through, in this order: `fetch.ts` and `days.ts` give a Download for the days that
 * were asked for; `range.ts`, `end-rule.ts` and `schedule.ts` give a RangeDownload for days of the plan; the window
 * builder makes a Window of that.
 */

/** The days that one export requests. */
export interface DaysRequest {
  readonly from: Day;
  readonly to: Day;
  /** The last day that the download is to make complete. */
  readonly through: Day;
  /** Whether a download that is too big is split by event names; else the caller asks for fewer days. */
  readonly splitByNames: boolean;
}

/** The rows of [from, to]: one file, or several for a day that was split by event names. */
export interface Downloaded {
  readonly kind: 'rows';
  readonly from: Day;
  readonly to: Day;
  readonly parts: readonly Verified[];
  readonly split: 'none' | 'names';
}

/** A day without rows and without a file: an export of more days, sent at `sentAt` (ms since 1970), had no row of it. */
interface KnownEmpty {
  readonly kind: 'empty';
  readonly sentAt: number;
}

/**
 * No download. `gone`: the service no longer has the first day. `invalid`: a 400, perhaps for a day that has not begun.
 * `too_big`: it failed so often that fewer days, or fewer event names, have to be requested.
 */
export interface NotDownloaded<Kind = 'gone' | 'invalid' | 'too_big'> {
  readonly kind: Kind;
  readonly message: string;
}

export type Download = Downloaded | KnownEmpty | NotDownloaded;

/**
 * The result for consecutive days of the plan. `gone` days are lost; `invalid` ones have not begun at the service; `later`
 * ones are left to a later run, since rows of them could come twice.
 */
export interface RangeDownload {
  readonly days: DayRange;
  readonly download: Downloaded | NotDownloaded<'gone' | 'invalid' | 'later'>;
  /** Last of the days that the download contains under every reading of `to_date` still possible; undefined: none. */
  readonly contains: Day | undefined;
}

export const windowOf = (days: DayRange, download: Downloaded, contains: Day | undefined): RangeDownload => ({
  days,
  download,
  contains,
});

export const withoutWindow = (days: DayRange, kind: 'gone' | 'invalid' | 'later', message: string): RangeDownload => ({
  days,
  download: { kind, message },
  contains: undefined,
});

/** Rows that the service sent; 0 where there is no download. */
export const rowCount = (download: Download): number =>
  download.kind === 'rows' ? download.parts.reduce((sum, part) => sum + rowsSent(part), 0) : 0;

/** When its earliest request was sent (ms since 1970): days that were over then are complete. */
export const sentAtOf = (download: Downloaded): number => Math.min(...download.parts.map((part) => part.sentAt));

/** Removes its files, if it has any. */
export async function discard(run: Run, download: Download | RangeDownload['download']): Promise<void> {
  if (run.deps.sharing?.keep === true) return;
  if (download.kind === 'rows') for (const part of download.parts) await run.spool.discard(part);
}
