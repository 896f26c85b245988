import { describe, expect, it } from 'vitest';
import { networkProblem } from '../../../src/service/http/network.ts';
import { ProxyRefused } from '../../../src/service/http/proxy.ts';
import { Truncated } from '../../../src/service/http/transport.ts';

const coded = (code: string) => Object.assign(new Error('x'), { code });

describe('a network error', () => {
  it.each([
    [coded('ENOTFOUND'), 'dns', false],
    [coded('EAI_AGAIN'), 'dns', false],
    [coded('ECONNREFUSED'), 'refused', false],
    [new AggregateError([coded('x')], 'all failed', {}), 'network', false],
    [coded('ETIMEDOUT'), 'connect_timeout', false],
    [coded('EHOSTUNREACH'), 'unreachable', false],
    [coded('EPROTO'), 'tls', false],
    [coded('ERR_SSL_WRONG_VERSION_NUMBER'), 'tls', false],
    [coded('CERT_HAS_EXPIRED'), 'certificate', true],
    [coded('ERR_TLS_CERT_ALTNAME_INVALID'), 'certificate', true],
    [coded('SELF_SIGNED_CERT_IN_CHAIN'), 'certificate', true],
    [coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'certificate', true],
    [coded('HPE_INVALID_CONSTANT'), 'protocol', false],
    [coded('ECONNRESET'), 'reset', false],
    [new Error('outer', { cause: coded('EPIPE') }), 'reset', false],
    [new Truncated('x'), 'reset', false],
    [new ProxyRefused(407), 'proxy', true],
    [new ProxyRefused(502), 'proxy', false],
    ['thrown text', 'network', false],
  ] as [unknown, string, boolean][])('%s is %s', (error, code, config) => {
    const trouble = networkProblem(error, 'api.example');
    expect(trouble).toMatchObject({ code, config });
    expect(trouble.message.endsWith('.')).toBe(config);
    if (!(error instanceof ProxyRefused)) expect(trouble.message).toContain('api.example');
  });
});
