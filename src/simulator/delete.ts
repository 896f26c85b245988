import { isObject } from '../base/json.ts';
import { answerJson, type Exchange, type HeaderFields, retryAfterHeader } from './service.ts';

const REQUEST_DATETIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Serves a deletion: token, service, body, planned answer, and only then the deletion itself. */
export async function serveDelete(exchange: Exchange): Promise<void> {
  const { service, req, body } = exchange;
  const { scenario, dataset } = service;
  if (req.headers.access_token !== scenario.import_token) return answerWithCode(exchange, '40201');
  if (exchange.serviceId !== scenario.service_id) return answerWithCode(exchange, '40101');
  const id = externalIdOf(body);
  if (id === undefined) return answerWithCode(exchange, '40001');
  const plannedAnswer = await service.awaitPlannedAnswer('delete', exchange.signal, id);
  const { status, retry_after_s, code = status === undefined ? '20000' : '50000' } = plannedAnswer;
  if (code === '20000') dataset.deleteUser(id);
  answerWithCode(exchange, code, status, retryAfterHeader(retry_after_s));
}

function externalIdOf(body: unknown): string | undefined {
  if (!isObject(body) || !isObject(body.identity)) return undefined;
  const { external_id: id } = body.identity;
  if (typeof id !== 'string' || id === '') return undefined;
  const time = body.request_datetime;
  return typeof time === 'string' && REQUEST_DATETIME.test(time) && !Number.isNaN(Date.parse(time)) ? id : undefined;
}

/** A failure has the status 200 unless the scenario says otherwise: a 200 can be a failure. */
function answerWithCode(exchange: Exchange, code: string, status = 200, headers?: HeaderFields): void {
  const isDone = code === '20000';
  const body = { status: isDone, code, message: isDone ? 'OK' : 'FAILED', data: isDone };
  answerJson(exchange, status, body, headers);
}
