import { describe, expect, it } from 'vitest';
import { sentenceOf } from '../../../src/base/text.ts';
import { DELETION_OUTCOMES, deletionTraits } from '../../../src/service/deletion-outcomes.ts';
import { contentOf } from '../../../src/service/export/content.ts';
import { EXPORT_OUTCOMES, type ExportTraits } from '../../../src/service/export/outcomes.ts';
import { matchOutcome } from '../../../src/service/outcome-table.ts';

type ExportCase = [
  status: number,
  reason: string | undefined,
  content: ExportTraits['content'],
  kind: string,
  code?: string,
];

describe('the answer to an export', () => {
  const traits = (status: number, reason?: string, content: ExportTraits['content'] = 'json'): ExportTraits => ({
    status,
    content,
    reason,
    host: 'api.example',
  });
  const rows: ExportCase[] = [
    [200, 'client_connection_closed', 'json', 'retry'],
    [200, 'exceed_date_range_limit', 'json', 'gone'],
    [200, 'unauthorized_token', 'json', 'config'],
    [200, 'invalid_parameter', 'json', 'invalid'],
    [200, 'too_many_api_requests', 'json', 'wait'],
    [200, 'query_error', 'json', 'retry_or_split'],
    [200, 'something_new', 'json', 'retry', 'json_200'],
    [200, undefined, 'empty_list', 'empty', 'empty_list'],
    [200, undefined, 'empty', 'empty', 'empty_body'],
    [200, undefined, 'html', 'retry', 'html_200'],
    [204, undefined, 'empty', 'empty', 'no_content'],
    [206, undefined, 'maybe_csv', 'retry', 'odd_status'],
    [302, undefined, 'empty', 'config', 'redirect'],
    [400, 'invalid_parameter', 'json', 'invalid'],
    [400, 'exceed_date_range_limit', 'json', 'gone'],
    [400, undefined, 'html', 'invalid', 'bad_request'],
    [401, 'unauthorized_token', 'json', 'config'],
    [401, undefined, 'html', 'config', 'unauthorized'],
    [403, undefined, 'html', 'config', 'unauthorized'],
    [404, undefined, 'html', 'empty', 'not_here'],
    [404, 'unauthorized_token', 'json', 'config'],
    [405, undefined, 'empty', 'config', 'refused_request'],
    [408, undefined, 'empty', 'retry', 'busy'],
    [413, undefined, 'html', 'retry_or_split'],
    [418, undefined, 'html', 'config', 'refused_request'],
    [422, undefined, 'json', 'invalid', 'bad_request'],
    [429, 'unauthorized_token', 'html', 'wait', 'too_many_api_requests'],
    [499, undefined, 'html', 'retry', 'busy'],
    [500, 'exceed_date_range_limit', 'json', 'retry_or_split'],
    [500, undefined, 'html', 'retry_or_split'],
    [503, undefined, 'html', 'retry', 'unavailable'],
    [504, undefined, 'html', 'retry_or_split'],
    [524, undefined, 'html', 'retry_or_split'],
    [799, undefined, 'empty', 'retry', 'odd_status'],
  ];

  it.each(rows)('%i %s %s is %s %s', (status, reason, content, kind, code) => {
    const outcome = matchOutcome(EXPORT_OUTCOMES, traits(status, reason, content));
    expect(outcome).toEqual({ kind, code, clause: expect.stringMatching(/^api\.example .*[^.]$/) });
  });

  it.each([
    ['[]', true],
    ['\uFEFF [] ', true],
    ['[1]', false],
    ['{"result":"fail","message":"Under maintenance","data":[]}', false],
  ])('an empty list: %s is %s', (text, expected) => {
    expect(contentOf(Buffer.from(text)) === 'empty_list').toBe(expected);
  });
});

describe('the answer to a deletion', () => {
  const OK = { status: true, code: '20000', message: 'OK', data: true };
  const failure = (code: unknown) => ({ status: false, code, message: 'x', data: null });
  const outcome = (status: number, body: unknown, hasConfirmedBefore = false) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const traits = deletionTraits(status, text, { host: 'api.example', hasConfirmedBefore });
    const { kind, clause } = matchOutcome(DELETION_OUTCOMES, traits);
    return { kind, message: sentenceOf(clause), code: traits.code };
  };

  it('is a success under any HTTP status if all four fields say so', () => {
    for (const status of [200, 204, 400, 401, 429, 500]) expect(outcome(status, { ...OK, extra: 1 }).kind).toBe('done');
  });

  it.each([
    ['status', false],
    ['status', 'true'],
    ['status', undefined],
    ['code', '20001'],
    ['code', 20000],
    ['code', undefined],
    ['message', 'Ok'],
    ['data', 'true'],
    ['data', null],
  ])('is not a success if %s is %j', (key, value) => {
    expect(['undecided', 'retry']).toContain(outcome(200, { ...OK, [key]: value }).kind);
  });

  it.each<[status: number, body: unknown, kind: string]>([
    [200, failure('40000'), 'rejected'],
    [200, { ...OK, data: false }, 'rejected'],
    [400, failure('40001'), 'rejected'],
    [200, failure(40001), 'rejected'],
    [200, failure('40402'), 'rejected'],
    [404, failure('40403'), 'rejected'],
    [200, failure('49999'), 'rejected'],
    [200, failure('somebody@example.com'), 'rejected'],
    [302, failure('40000'), 'stop'],
    [401, failure('40000'), 'stop'],
    [403, failure('40001'), 'stop'],
    [429, failure('40000'), 'wait'],
    [503, failure('40000'), 'retry'],
    [200, failure('40101'), 'stop'],
    [200, failure('40201'), 'stop'],
    [200, failure('40401'), 'wait'],
    [429, '<html>', 'wait'],
    [200, failure('50000'), 'retry'],
    [200, '<html>', 'retry'],
    [200, '[]', 'retry'],
    [204, '', 'retry'],
    [301, '', 'stop'],
    [400, '<html>', 'undecided'],
    [401, '', 'stop'],
    [404, '<html>', 'stop'],
    [404, { code: 'NOT_FOUND', message: 'no route' }, 'stop'],
    [404, { status: 404, code: 404 }, 'stop'],
    [405, '', 'stop'],
    [408, '', 'retry'],
    [502, '<html>', 'retry'],
  ])('%i %j is %s', (status, body, kind) => {
    const found = outcome(status, body);
    expect(found.kind).toBe(kind);
    expect(`${found.message}${found.code}`).not.toContain('somebody');
    expect(found.message).toMatch(/[.?]$/);
  });

  it('404 without a code is a rejection once a deletion was confirmed', () => {
    expect(outcome(404, '', true).kind).toBe('rejected');
    expect(outcome(404, '').message).toContain('Is base_url right?');
  });
});
