import { describe, expect, it } from 'vitest';
import { type AnswerFacts, EXPORT_OUTCOMES } from '../../../src/service/export/outcomes.ts';
import { firstMatch } from '../../../src/service/outcome.ts';

const exportOutcome = (facts: AnswerFacts) => firstMatch(EXPORT_OUTCOMES, facts);

const facts = (status: number, reason?: string, content: AnswerFacts['content'] = 'json'): AnswerFacts => ({
  status,
  content,
  reason,
  host: 'api.example',
  location: undefined,
});

describe('the outcome of an export', () => {
  const rows: [number, string | undefined, AnswerFacts['content'], string, string | undefined][] = [
    [200, 'client_connection_closed', 'json', 'retry', undefined],
    [200, 'exceed_date_range_limit', 'json', 'gone', undefined],
    [200, 'unauthorized_token', 'json', 'config', undefined],
    [200, 'invalid_parameter', 'json', 'invalid', undefined],
    [200, 'too_many_api_requests', 'json', 'wait', undefined],
    [200, 'query_error', 'json', 'retry_or_split', undefined],
    [200, 'something_new', 'json', 'retry', 'json_200'],
    [200, undefined, 'html', 'retry', 'html_200'],
    [204, undefined, 'empty', 'retry', 'odd_status'],
    [302, undefined, 'empty', 'config', 'redirect'],
    [304, undefined, 'empty', 'config', 'redirect'],
    [400, 'invalid_parameter', 'json', 'invalid', undefined],
    [400, 'exceed_date_range_limit', 'json', 'gone', undefined],
    [400, undefined, 'html', 'invalid', 'bad_request'],
    [400, 'unauthorized_token', 'json', 'config', undefined],
    [401, 'unauthorized_token', 'json', 'config', undefined],
    [401, undefined, 'html', 'config', 'unauthorized'],
    [403, undefined, 'html', 'config', 'forbidden'],
    [404, undefined, 'html', 'config', 'not_here'],
    [405, undefined, 'empty', 'config', 'not_here'],
    [407, undefined, 'empty', 'config', 'proxy'],
    [408, undefined, 'empty', 'retry', 'timeout'],
    [409, undefined, 'empty', 'retry', 'busy'],
    [413, undefined, 'html', 'retry_or_split', 'too_large'],
    [418, undefined, 'html', 'config', 'refused_request'],
    [422, undefined, 'json', 'invalid', 'bad_request'],
    [425, undefined, 'empty', 'retry', 'busy'],
    [429, 'too_many_api_requests', 'json', 'wait', 'too_many_api_requests'],
    [429, 'unauthorized_token', 'html', 'wait', 'too_many_api_requests'],
    [500, 'unknown_error', 'json', 'retry_or_split', undefined],
    [500, 'exceed_date_range_limit', 'json', 'retry_or_split', undefined],
    [500, undefined, 'html', 'retry_or_split', undefined],
    [502, undefined, 'html', 'retry', 'unavailable'],
    [503, undefined, 'html', 'retry', 'unavailable'],
    [504, undefined, 'html', 'retry_or_split', 'gateway_timeout'],
    [524, undefined, 'html', 'retry_or_split', 'gateway_timeout'],
    [599, undefined, 'empty', 'retry', 'unavailable'],
    [799, undefined, 'empty', 'retry', 'odd_status'],
  ];
  it.each(rows)('for %i %s %s is %s', (status, reason, content, kind, code) => {
    const row = exportOutcome(facts(status, reason, content));
    expect({ kind: row.kind, code: row.code }).toEqual({ kind, code });
  });

  it('has a row, and a message that names the host, for every status', () => {
    for (let status = 100; status < 1_000; status++) {
      for (const content of ['empty', 'json', 'html', 'other'] as const) {
        const at = facts(status, undefined, content);
        expect(exportOutcome(at).message(at)).toMatch(status === 407 ? /proxy/ : /api\.example/);
      }
    }
  });

  it('uses every row of the table', () => {
    const used = new Set<unknown>();
    const reasons = [undefined, ...rows.flatMap(([, reason]) => reason ?? [])];
    for (let status = 100; status < 601; status++) {
      for (const reason of reasons) {
        for (const content of ['json', 'html'] as const) used.add(exportOutcome(facts(status, reason, content)));
      }
    }
    expect(EXPORT_OUTCOMES.filter((row) => !used.has(row)).map(({ kind, code }) => [kind, code])).toEqual([]);
  });

  it('names the reason in the body, or that there was none', () => {
    const said = (status: number, reason?: string) =>
      exportOutcome(facts(status, reason)).message(facts(status, reason));
    expect([said(500, 'query_error'), said(503)]).toEqual([
      'api.example answered 500 (query_error)',
      'api.example answered 503',
    ]);
    expect(said(400, 'odd')).toContain('(400, odd)');
    expect(said(400)).toContain('(400, no reason that is known)');
    expect(said(200, 'odd')).toContain('200 (odd) in place of CSV');
  });

  it('explains a wrong token, and has no full stop after a clause', () => {
    expect(exportOutcome(facts(401)).message(facts(401))).toMatch(/reissued .* replaces the old one/);
    for (const { kind, message } of EXPORT_OUTCOMES) {
      if (kind === 'retry' || kind === 'retry_or_split') expect(message(facts(500))).not.toMatch(/\.$/);
      else expect(message(facts(400))).toMatch(/[.?]$/);
    }
  });
});
