import { describe, expect, it } from 'vitest';
import { DELETION_OUTCOMES, deletionFacts } from '../../../src/service/delete/outcomes.ts';
import { firstMatch } from '../../../src/service/outcome.ts';

const ABOUT = { host: 'api.example', hasDeleted: false };
const OK = { status: true, code: '20000', message: 'OK', data: true };
const failure = (code: unknown, more: object = {}) => ({ status: false, code, message: 'x', data: null, ...more });
const judged = (status: number, body: unknown) => {
  const facts = deletionFacts(status, typeof body === 'string' ? body : JSON.stringify(body), ABOUT);
  return firstMatch(DELETION_OUTCOMES, facts).kind;
};

describe('the outcome of a deletion', () => {
  it('is a success under any HTTP status when all four fields say so', () => {
    for (const status of [200, 201, 204, 400, 401, 429, 500, 503]) expect(judged(status, OK)).toBe('done');
    expect(judged(200, { ...OK, extra: 1 })).toBe('done');
  });

  it.each([
    ['status', false],
    ['status', 'true'],
    ['status', undefined],
    ['code', 20000],
    ['code', '20001'],
    ['code', undefined],
    ['message', 'Ok'],
    ['message', undefined],
    ['data', false],
    ['data', 'true'],
    ['data', null],
    ['data', undefined],
  ])('is not a success when %s is %j', (key, value) => {
    for (const status of [200, 201, 500]) {
      const kind = judged(status, { ...OK, [key]: value });
      expect(['undecided', 'retry']).toContain(kind);
    }
  });

  const rows: [number, unknown, string][] = [
    [200, failure('40000'), 'rejected'],
    [200, failure('40001'), 'rejected'],
    [400, failure('40001'), 'rejected'],
    [200, failure(40001), 'rejected'],
    [200, failure('40000', { status: true }), 'undecided'],
    [404, failure('40001'), 'rejected'],
    [422, failure('40000'), 'rejected'],
    [302, failure('40000'), 'stop'],
    [401, failure('40000'), 'stop'],
    [403, failure('40001'), 'stop'],
    [408, failure('40000'), 'retry'],
    [429, failure('40000'), 'wait'],
    [500, failure('40000'), 'retry'],
    [200, failure('40101'), 'stop'],
    [401, failure('40101'), 'stop'],
    [200, failure('40201'), 'stop'],
    [200, failure('40401'), 'wait'],
    [429, failure('40401'), 'wait'],
    [429, '<html>', 'wait'],
    [200, failure('40402'), 'undecided'],
    [404, failure('40402'), 'undecided'],
    [404, failure('40403'), 'undecided'],
    [200, failure('50000'), 'retry'],
    [500, failure('50000'), 'retry'],
    [200, failure('49999'), 'undecided'],
    [200, failure('somebody@example.com'), 'undecided'],
    [200, '<html>', 'retry'],
    [200, '', 'retry'],
    [200, 'true', 'retry'],
    [200, '[]', 'retry'],
    [204, '', 'retry'],
    [301, '', 'stop'],
    [308, '', 'stop'],
    [400, '<html>', 'undecided'],
    [401, '', 'stop'],
    [403, '<html>', 'stop'],
    [404, '<html>', 'stop'],
    [404, '', 'stop'],
    [404, failure('40404'), 'undecided'],
    [405, '', 'stop'],
    [407, '', 'stop'],
    [408, '', 'retry'],
    [409, '', 'retry'],
    [413, '', 'undecided'],
    [425, '', 'retry'],
    [500, '', 'retry'],
    [502, '<html>', 'retry'],
    [503, '<html>', 'retry'],
    [600, '', 'undecided'],
  ];
  it.each(rows)('for %i %j is %s', (status, body, kind) => {
    expect(judged(status, body)).toBe(kind);
  });

  it('has a message without any text of the body', () => {
    for (const [status, body] of rows) {
      const facts = deletionFacts(status, JSON.stringify(body), ABOUT);
      const said = firstMatch(DELETION_OUTCOMES, facts).message(facts);
      expect(said).toMatch(/[.?]$/);
      expect(said).not.toContain('somebody');
      expect(facts.code ?? '').not.toContain('somebody');
    }
  });

  it('asks for base_url after a 404 with an unknown code alone, before any deletion is done', () => {
    const said = (status: number, code: string, hasDeleted: boolean) => {
      const facts = deletionFacts(status, JSON.stringify(failure(code)), { ...ABOUT, hasDeleted });
      return firstMatch(DELETION_OUTCOMES, facts).message(facts).includes('base_url');
    };
    expect(said(404, '40404', false)).toBe(true);
    expect([said(404, '40404', true), said(404, '40402', false), said(200, '49999', false)]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it('depends on the four fields for every row', () => {
    expect(DELETION_OUTCOMES.filter(({ kind }) => kind === 'done')).toHaveLength(1);
  });
});

it.each(['null', '5', '"20000"', '[]', '', '{'])('of a body that is not an object has no code: %s', (text) => {
  expect(deletionFacts(200, text, ABOUT)).toEqual({
    status: 200,
    code: undefined,
    allFour: false,
    claimsSuccess: false,
    ...ABOUT,
  });
});
