// This folder: the exports of events and of profiles. This file has the words of the others.
// `quota.ts` holds requests back by `quota-rules.ts`. `content.ts` looks at the start of an answer, and `outcomes.ts`
// says what it means. `export-header.ts` reads the first line alone, and `profiles.ts` downloads profiles.
//
//   file              handles               and gives
//   client.ts         one request           an ExportAnswer: a body that may be CSV, or a RequestFailure
//   checked-body.ts   the body of one       a CheckedBody, or throws
//   download.ts       all of an export      a DownloadResult: a CheckedBody, or a DownloadFailure
//
// What a download means for a day, its DayResult, is decided in extract/download.

import type { Day } from '../../base/days.ts';
import { type FailurePosition, UserError } from '../../base/errors.ts';
import { sentenceOf } from '../../base/text.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { QuotaReport } from '../quota-report.ts';

/** Thrown in place of an answer, or by its bytes: no answer came, or its body could not be read to its end. */
export class InterruptedExport extends UserError {
  override readonly name = 'InterruptedExport';
  /** What this means as an answer. */
  readonly failure: RequestFailure;

  constructor(failure: RequestFailure, cause?: unknown) {
    const { code, clause } = failure;
    super('transient', sentenceOf(clause), { detail: `${code}: ${clause}`, cause });
    this.failure = failure;
  }
}

/**
 * Why one request gave no data. `download.ts` says which of these end a download.
 *
 *   empty            no byte, 204, 404, an empty list: perhaps a day without rows
 *   retry            a failure that may pass
 *   retry_or_split   a failure that may pass, or mean that the export is too large
 *   wait             a refusal for the quota
 *   config           what the user must change
 *   gone             days older than the service exports, or no export of profiles
 *   invalid          a request, or a day that has not begun, that is not accepted
 *   unsupported      a body of another format, as another download would have it
 */
export interface RequestFailure {
  readonly kind: 'empty' | 'retry' | 'retry_or_split' | 'wait' | 'config' | 'gone' | 'invalid' | 'unsupported';
  /** The reason, of which a kind has several. */
  readonly code: string;
  /** What happened and what to do, without a capital and a period. `sentenceOf` makes a sentence of it. */
  readonly clause: string;
  /** Row and byte of a body that came to its end and is broken. */
  readonly where?: FailurePosition | undefined;
}

/** Why all requests for an export gave no data. `later`: the next run may succeed. `too_large`: a smaller export may. */
export interface DownloadFailure extends Omit<RequestFailure, 'kind'> {
  readonly kind: 'later' | 'too_large' | Exclude<RequestFailure['kind'], 'retry' | 'retry_or_split' | 'wait'>;
}

/**
 * The answer to one request. `data`: a 200 whose body may be CSV, and is data only when it was read to its end and
 * verified. `stream` is decompressed; it throws InterruptedExport, or the signal's reason. An early end without an error
 * shows in the rows alone.
 */
export type ExportAnswer = ({ readonly kind: 'data'; readonly stream: AsyncIterable<Uint8Array> } | RequestFailure) & {
  readonly quotaReport: QuotaReport;
  /** The service's `Date` header in ms; undefined if it had none. */
  readonly serverTime: number | undefined;
};

export interface ExportService {
  /**
   * Sends one export, without any retry, when the quota allows it, and gives its answer to `use`. That must not send
   * another: it would wait for its own turn. Closes the connection once `use` has settled. Throws what `use` throws, an
   * InterruptedExport, other UserErrors, and the signal's reason.
   */
  export<T>(request: ExportRequest, signal: AbortSignal, use: (answer: ExportAnswer) => Promise<T>): Promise<T>;
}

/** The filters of an export, without the days. */
export type ExportFilters = Pick<SourceConfig, 'events' | 'eventsCondition' | 'properties' | 'propertiesCondition'>;

export interface EventRequest extends ExportFilters {
  readonly from: Day;
  readonly to: Day;
}

/** The attributes that are wanted; the ids come with every profile. */
export type ProfileRequest = Pick<ExportFilters, 'properties' | 'propertiesCondition'>;

export type ExportRequest = EventRequest | ProfileRequest;
