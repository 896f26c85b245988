import { isObject } from '../base/json.ts';
import { memberNumber } from './data/columns.ts';
import { answer, type Exchange, failByFault, isJson } from './exchange.ts';
import { limitHeaders } from './limit.ts';
import type { Fault } from './scenario.ts';

/** The documented codes: their messages, and the HTTP status where the scenario gives each its own. */
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

/** Serves one deletion: token, service, quota, body, fault, and only then the deletion itself. */
export async function serveDelete(exchange: Exchange): Promise<void> {
  const { service, seen, req } = exchange;
  if (req.headers.access_token !== service.tokens.import) return answerCode(exchange, '40201');
  if (seen.query.service_id !== service.serviceId) return answerCode(exchange, '40101');
  const id = externalIdOf(exchange);
  if (id !== undefined) service.log.sawDeletion(id);
  if (refuseOverLimit(exchange)) return note(exchange, id);
  if (id === undefined) return answerCode(exchange, '40001');
  const fault = service.rules.next({ operation: 'delete', externalId: id });
  seen.fault = fault?.kind;
  if (fault && (await failInstead(exchange, fault))) return note(exchange, id);
  erase(exchange, id, fault);
  note(exchange, id);
}

const note = (exchange: Exchange, id: string | undefined): void => {
  if (id !== undefined) exchange.service.log.answeredDeletion(id, exchange.seen.outcome ?? 'cut');
};

function externalIdOf(exchange: Exchange): string | undefined {
  const { body } = exchange.seen;
  if (!isJson(exchange) || !isObject(body) || !isObject(body.identity)) return undefined;
  const { external_id: id } = body.identity;
  if (typeof id !== 'string' || id === '') return undefined;
  const at = body.request_datetime;
  return typeof at === 'string' && DATETIME.test(at) && !Number.isNaN(Date.parse(at)) ? id : undefined;
}

function refuseOverLimit(exchange: Exchange): boolean {
  const { service } = exchange;
  const { limits, deletions } = service.scenario;
  const now = service.clock.now();
  const allowance = service.deleteWindow.allowance(limits.window, limits.deletions_per_minute, now);
  if (!allowance.isOver) {
    service.deleteWindow.take(now);
    return false;
  }
  if (deletions.over_limit === '40401') answerCode(exchange, '40401');
  else answerCode(exchange, '40401', 429);
  return true;
}

/** A fault in place of the deletion; false where the deletion takes place all the same. */
async function failInstead(exchange: Exchange, fault: Fault): Promise<boolean> {
  if (fault.kind === 'code') {
    answerCode(exchange, fault.code, fault.status, fault.message);
    return true;
  }
  if (fault.kind === 'reset') {
    exchange.res.socket?.resetAndDestroy();
    return true;
  }
  if (fault.kind === 'stall') {
    if (fault.for_s === undefined) return true;
    await exchange.service.clock.sleep(fault.for_s * 1_000, exchange.closed);
    return false;
  }
  return failByFault(exchange, fault, limitsOf(exchange));
}

/** The deletion itself; with `cut_after` it is executed and no answer is sent. */
function erase(exchange: Exchange, id: string, fault: Fault | undefined): void {
  const { service } = exchange;
  const { known_ids, unmatched, codes } = service.scenario.deletions;
  const isKnown = known_ids === undefined || known_ids.includes(id);
  const code = (Object.hasOwn(codes, id) ? codes[id] : undefined) ?? (isKnown ? '20000' : unmatched);
  if (isKnown && code === '20000') removeProfile(exchange, id);
  if (fault?.kind === 'cut_after') {
    exchange.seen.outcome = 'cut';
    exchange.res.socket?.resetAndDestroy();
    return;
  }
  answerCode(exchange, code);
}

function removeProfile({ service }: Exchange, id: string): void {
  service.log.deleted(id);
  if (service.scenario.rows.of_deleted_profiles === 'kept') return;
  const user = Number(id);
  if (memberNumber(user) === id) service.deletedUsers.add(user);
}

function answerCode(exchange: Exchange, code: string, status?: number, message?: string): void {
  const { deletions } = exchange.service.scenario;
  const known = Object.hasOwn(CODES, code) ? CODES[code as Code] : { message: 'UNKNOWN', status: 400 };
  const isDone = code === '20000';
  const byCode = deletions.failure_status === 'by_code' ? known.status : 200;
  const http = status ?? (isDone ? deletions.success_status : byCode);
  exchange.seen.outcome = status === undefined || status < 400 ? code : `HTTP ${status} ${code}`;
  const body = { status: isDone, code, message: message ?? known.message, data: isDone };
  answer(exchange, http, 'application/json', JSON.stringify(body), limitsOf(exchange, code === '40401'));
}

function limitsOf({ service }: Exchange, isRefusal = false): Record<string, string> {
  const { limits } = service.scenario;
  if (limits.headers_on === '429' && !isRefusal) return {};
  const now = service.clock.now();
  const allowance = service.deleteWindow.allowance(limits.window, limits.deletions_per_minute, now);
  return limitHeaders(limits, 'delete', isRefusal ? { ...allowance, remaining: 0 } : allowance, now);
}
