import type { Day } from '../base/days.ts';
import type { Runtime } from '../base/runtime.ts';
import type { ScanResult } from '../cells/columns/export-scanner.ts';
import type { SourceConfig } from '../config/source.ts';
import { clockWarning, requireCloseClocks } from '../service/clock-check.ts';
import type { ExportAnswer, ExportRequest, ExportService } from '../service/export/export-service.ts';
import { includesToDateOf, type RunPlan } from './which-days.ts';

/** The service, and what its answers have shown so far. Others read its fields; its methods alone change them. */
export class ObservedService implements ExportService {
  answeredExports = 0;
  /** Bytes of CSV received, also of exports that fail. */
  receivedBytes = 0;
  /** Whether an export includes its `to_date`; undefined while it is not known. */
  includesToDate: boolean | undefined;
  /** False if files end without a line end; undefined while it is not known. */
  hasFinalNewline: boolean | undefined;
  /** True once it has exported a day as CSV, in this run or an earlier one. */
  hasExportedDay = false;
  readonly eventNames = new Set<string>();
  /** Columns to drop or hash that no export has had so far. At the end the run warns of them. */
  readonly unseenColumns: Set<string>;
  readonly #service: ExportService;
  readonly #runtime: Pick<Runtime, 'clock' | 'logger'>;
  #hasWarnedOfClocks = false;

  constructor(
    service: ExportService,
    { columnsDrop, columnsHash }: Pick<SourceConfig, 'columnsDrop' | 'columnsHash'>,
    runtime: Pick<Runtime, 'clock' | 'logger'>,
  ) {
    this.#service = service;
    this.unseenColumns = new Set([...columnsDrop, ...columnsHash]);
    this.#runtime = runtime;
  }

  export<T>(request: ExportRequest, signal: AbortSignal, use: (answer: ExportAnswer) => Promise<T>): Promise<T> {
    return this.#service.export(request, signal, async (answer) => {
      this.answeredExports++;
      const { clock, logger } = this.#runtime;
      requireCloseClocks(clock.now(), answer.serverTime);
      const warning = clockWarning(clock.now(), answer.serverTime);
      if (warning !== undefined && !this.#hasWarnedOfClocks) logger.warn('clock.apart', warning);
      this.#hasWarnedOfClocks ||= warning !== undefined;
      return use(answer.kind === 'data' ? { ...answer, stream: this.#counted(answer.stream) } : answer);
    });
  }

  async *#counted(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of stream) {
      this.receivedBytes += chunk.length;
      yield chunk;
    }
  }

  /** Takes over what earlier runs have seen. */
  learnFromPlan(plan: RunPlan): void {
    this.includesToDate ??= includesToDateOf(plan);
    this.hasFinalNewline ??= plan.state?.final_newline;
    this.hasExportedDay ||= plan.receipts.size > 0;
  }

  learnFromScan({ eventNames, editedNames, hasFinalNewline, rows }: ScanResult): void {
    for (const name of eventNames) this.eventNames.add(name);
    this.markColumnsSeen(editedNames);
    // A header alone may have a line end where the last row has none.
    if (rows > 0) this.hasFinalNewline = hasFinalNewline;
    this.hasExportedDay = true;
  }

  /** Takes over what the exports of a day have proved. */
  learnFromProof(day: Day, includesToDate: boolean): void {
    this.includesToDate = includesToDate;
    const message = `The export of ${day} proves that to_date is ${includesToDate ? 'included' : 'not included'}.`;
    this.#runtime.logger.info('end_day.proved', message, { day, to_date_inclusive: includesToDate });
  }

  markColumnsSeen(names: Iterable<string>): void {
    for (const name of names) this.unseenColumns.delete(name);
  }
}
