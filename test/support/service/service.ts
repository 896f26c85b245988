import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { LogEvent } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { DeletionClient } from '../../../src/service/deletion-client.ts';
import { ExportClient, type ExportClientOptions } from '../../../src/service/export/client.ts';
import {
  type EventRequest,
  type ExportService,
  InterruptedExport,
  type RequestFailure,
} from '../../../src/service/export/export-service.ts';
import type { ExportQuota } from '../../../src/service/export/quota.ts';
import type { QuotaAnswer } from '../../../src/service/export/quota-rules.ts';

export const CANARY = 'canary-token-5e1f';

export const EXPORT_REQUEST: EventRequest = {
  from: '2026-01-10',
  to: '2026-01-11',
  events: [],
  eventsCondition: 'all',
  properties: [],
  propertiesCondition: 'all',
};

/** A quota that admits everybody and remembers what it was told. */
class OpenQuota implements Pick<ExportQuota, 'run' | 'record'> {
  entered = 0;
  released = 0;
  readonly answers: QuotaAnswer[] = [];

  run<T>(_signal: AbortSignal, send: () => Promise<T>): Promise<T> {
    this.entered++;
    return send().finally(() => this.released++);
  }

  record(answer: QuotaAnswer): void {
    this.answers.push(answer);
  }
}

export function exportService(baseUrl: string, more: Partial<ExportClientOptions> = {}) {
  const quota = new OpenQuota();
  const service = new ExportClient({
    baseUrl,
    serviceId: 'svc-1',
    exportToken: new Secret(CANARY),
    clock: systemClock,
    env: {},
    quota,
    ...more,
  });
  return { service, quota };
}

export function deletionClient(baseUrl: string, clock: Clock = systemClock): DeletionClient {
  const importToken = new Secret(CANARY);
  return new DeletionClient({ baseUrl, serviceId: 'svc-1', importToken, maxConcurrentRequests: 2, clock, env: {} });
}

/** The text of one export, or why it has none. */
export function answerOf(
  service: ExportService,
  {
    request = EXPORT_REQUEST,
    signal = new AbortController().signal,
  }: { readonly request?: EventRequest; readonly signal?: AbortSignal } = {},
): Promise<{ readonly kind: 'data'; readonly text: string } | RequestFailure> {
  const asking = service.export(request, signal, async (answer) => {
    if (answer.kind !== 'data') return answer;
    const chunks: Uint8Array[] = [];
    for await (const chunk of answer.stream) chunks.push(Buffer.from(chunk));
    return { kind: answer.kind, text: Buffer.concat(chunks).toString() };
  });
  return asking.catch((error: unknown) => {
    if (error instanceof InterruptedExport) return error.failure;
    throw error;
  });
}

/** An array that keeps what is logged. */
export function logRecorder() {
  const events: LogEvent[] = [];
  const at = (level: LogEvent['level']) => (event: string, message: string, fields?: LogEvent['fields']) => {
    events.push({ level, event, message, ...(fields && { fields }) });
  };
  return { events, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}
