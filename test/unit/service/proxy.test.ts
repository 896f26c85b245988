import { describe, expect, it } from 'vitest';
import { isExempt, proxyFor } from '../../../src/service/http/proxy.ts';

const env = (values: Record<string, string>) => (name: string) => values[name];
const PROXY = 'http://proxy.example:3128';

describe('the proxy for an address', () => {
  it.each([
    ['https://api.example', { HTTPS_PROXY: PROXY }, `${PROXY}/`],
    ['https://api.example', { https_proxy: PROXY, HTTPS_PROXY: 'http://other' }, `${PROXY}/`],
    ['https://api.example', { HTTPS_PROXY: 'proxy.example:3128' }, `${PROXY}/`],
    ['https://api.example', { HTTPS_PROXY: PROXY, NO_PROXY: 'example' }, undefined],
    ['https://api.example', { HTTPS_PROXY: PROXY, no_proxy: '*' }, undefined],
    ['https://api.example', { HTTP_PROXY: PROXY }, undefined],
    ['https://api.example', {}, undefined],
    ['http://127.0.0.1:8080', { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY }, undefined],
    ['https://localhost', { HTTPS_PROXY: PROXY }, undefined],
    ['http://api.example', { HTTPS_PROXY: PROXY }, undefined],
    ['https://[::1]:8443', { HTTPS_PROXY: PROXY }, undefined],
  ] as [string, Record<string, string>, string | undefined][])('%s with %j', (url, values, proxy) => {
    expect(proxyFor(url, env(values))?.href).toBe(proxy);
  });

  it.each(['socks5://proxy:1080', 'http://', 'http://a b'])('%s is refused without printing it', (text) => {
    expect(() => proxyFor('https://api.example', env({ HTTPS_PROXY: text }))).toThrow(
      /^HTTPS_PROXY is not the address/,
    );
  });
});

describe('the proxy variables', () => {
  const of = (text: string) => proxyFor('https://api.example', env({ HTTPS_PROXY: text }))?.href;

  it.each([
    [' proxy:1 ', 'http://proxy:1/'],
    ['HTTP://proxy:1', 'http://proxy:1/'],
    ['https://proxy', 'https://proxy/'],
    ['proxy:1/?u=a://b', 'http://proxy:1/?u=a://b'],
    ['', undefined],
    ['  ', undefined],
  ])('for %j give %s', (text, href) => {
    expect(of(text)).toBe(href);
  });

  it.each(['http:///proxy', 'ftp://http://proxy', 'ws2+a.b-c://proxy', 'httpx://proxy'])('refuse %s', (text) => {
    expect(() => of(text)).toThrow(/^HTTPS_PROXY is not/);
  });

  it.each([
    ['https://api.example', 'api.example', true],
    ['https://api.example', '.example', true],
    ['https://api.example', '*.example', true],
    ['https://api.example', 'xample', false],
    ['https://api.example', 'other, API.EXAMPLE', true],
    ['https://api.example', '', false],
    ['https://api.example', 'api.example:443', true],
    ['https://api.example', 'api.example:8443', false],
    ['https://api.example:8443', 'api.example:443', false],
    ['https://api.example:8443', 'api.example:8443', true],
    ['http://api.example', 'api.example:80', true],
    ['http://api.example', 'api.example:443', false],
    ['https://api.example', '*.api.example', true],
    ['https://api.example', 'example:44', false],
    ['https://api.example', 'other\n*', true],
    ['https://api.example', 'x*', false],
    ['https://api.example', ' , ,', false],
    ['https://a.api.example', 'api.example', true],
    ['https://a.api.example', 'a.api', false],
    ['https://API.example', 'Api.Example', true],
  ])('with %s and NO_PROXY %j: %s', (url, list, exempt) => {
    expect(isExempt(new URL(url), list)).toBe(exempt);
  });
});
