import { isObject } from '../base/json.ts';
import { memberNumber } from './data/columns.ts';
import { answer, type Exchange, failByFault, isJson } from './exchange.ts';
import type { SeenDeletion } from './request-log.ts';
import type { Fault } from './scenario.ts';

/** The documented codes with their messages, and the HTTP status if the scenario gives each code its own. */
const CODES = {
  '20000': { message: 'OK', status: 200 },
  '40000': { message: 'BAD_REQUEST', status: 400 },
  '40001': { message: 'VALIDATION_FAILURE', status: 400 },
  '40101': { message: 'INVALID_SERVICE_ID', status: 401 },
  '40201': { message: 'INVALID_TOKEN', status: 401 },
  '40401': { message: 'TOO_MANY_REQUEST', status: 429 },
  '40402': { message: 'NOT_FOUND', status: 404 },
  '40403': { message: 'NOT_FOUND', status: 404 },
  '50000': { message: 'INTERNAL_SERVER_ERROR', status: 500 },
} as const satisfies Record<string, { message: string; status: number }>;
type Code = keyof typeof CODES;

const DATETIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Maximum number of answers of one id that are kept. */
const MAX_ANSWERS = 20;

/** Serves one deletion: token, service, quota, body, fault, and only then the deletion itself. */
export async function serveDelete(exchange: Exchange): Promise<void> {
  const { service, seen, req } = exchange;
  if (req.headers.access_token !== service.tokens.import) return answerCode(exchange, '40201');
  if (seen.query.service_id !== service.options.serviceId) return answerCode(exchange, '40101');
  const id = externalIdOf(exchange);
  const known = id === undefined ? undefined : service.log.deletionOf(id);
  if (known !== undefined) known.count++;
  if (service.limits.delete.allowance().remaining === 0) {
    const isCode = service.scenario.deletions.over_limit === '40401';
    answerCode(exchange, '40401', isCode ? undefined : 429);
  } else {
    service.limits.delete.count();
    if (known === undefined) return answerCode(exchange, '40001');
    const fault = service.faultOf({ operation: 'delete', externalId: known.externalId });
    seen.fault = fault?.kind;
    if (fault === undefined || !(await failInstead(exchange, fault))) erase(exchange, known, fault);
  }
  if (known !== undefined) known.answers = [...known.answers, seen.outcome ?? 'cut'].slice(-MAX_ANSWERS);
}

function externalIdOf(exchange: Exchange): string | undefined {
  const { body } = exchange.seen;
  if (!isJson(exchange) || !isObject(body) || !isObject(body.identity)) return undefined;
  const { external_id: id } = body.identity;
  if (typeof id !== 'string' || id === '') return undefined;
  const at = body.request_datetime;
  return typeof at === 'string' && DATETIME.test(at) && !Number.isNaN(Date.parse(at)) ? id : undefined;
}

/** Answers with a fault instead of the deletion; false if the deletion takes place all the same. */
async function failInstead(exchange: Exchange, fault: Fault): Promise<boolean> {
  if (fault.kind === 'code') answerCode(exchange, fault.code, fault.status, fault.message);
  else if (fault.kind === 'reset') exchange.res.socket?.resetAndDestroy();
  else if (fault.kind === 'stall' && fault.for_s !== undefined) {
    await exchange.service.clock.sleep(fault.for_s * 1_000, exchange.closed);
    return false;
  } else if (fault.kind !== 'stall') return failByFault(exchange, fault, 'delete');
  return true;
}

/** Executes the deletion; with `cut_after` no answer is sent. */
function erase(exchange: Exchange, seen: SeenDeletion, fault: Fault | undefined): void {
  const { scenario, deletedUsers } = exchange.service;
  const { known_ids, unmatched, codes } = scenario.deletions;
  const id = seen.externalId;
  const isKnown = known_ids === undefined || known_ids.includes(id);
  const code = (Object.hasOwn(codes, id) ? codes[id] : undefined) ?? (isKnown ? '20000' : unmatched);
  if (isKnown && code === '20000') {
    seen.deleted++;
    const user = Number(id);
    if (scenario.rows.of_deleted_profiles === 'removed' && memberNumber(user) === id) deletedUsers.add(user);
  }
  if (fault?.kind === 'cut_after') {
    exchange.seen.outcome = 'cut';
    exchange.res.socket?.resetAndDestroy();
  } else answerCode(exchange, code);
}

function answerCode(exchange: Exchange, code: string, status?: number, message?: string): void {
  const { limits, scenario } = exchange.service;
  const { success_status, failure_status } = scenario.deletions;
  const known = Object.hasOwn(CODES, code) ? CODES[code as Code] : { message: 'UNKNOWN', status: 400 };
  const isDone = code === '20000';
  const http = status ?? (isDone ? success_status : failure_status === 'by_code' ? known.status : 200);
  exchange.seen.outcome = status === undefined || status < 400 ? code : `HTTP ${status} ${code}`;
  const body = { status: isDone, code, message: message ?? known.message, data: isDone };
  const headers = limits.delete.headers(code === '40401' ? { remaining: 0 } : undefined);
  answer(exchange, http, { type: 'application/json', body: JSON.stringify(body) }, headers);
}
