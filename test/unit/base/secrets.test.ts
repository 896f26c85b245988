import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Redactor, Secret } from '../../../src/base/secrets.ts';

const TEXT = 'can"ary/7+한';

describe('a secret', () => {
  it('is in no text that is made of it', () => {
    const secret = new Secret(TEXT);
    const texts = [`${secret}`, JSON.stringify({ secret }), inspect({ secret }), String([secret])];
    expect(texts.filter((text) => /can|ary/.test(text))).toEqual([]);
    expect(secret.reveal()).toBe(TEXT);
  });

  it('is masked wherever a text repeats it, also as a URL or JSON spells it', () => {
    const redactor = new Redactor();
    redactor.add(new Secret(TEXT));
    redactor.add(new Secret('second-secret'));
    const text = `${TEXT} ${TEXT}, https://host/?t=${encodeURIComponent(TEXT)}, ${JSON.stringify({ TEXT })}, second-secret`;
    expect(redactor.mask(text)).not.toMatch(/can|ary|second/);
    expect(redactor.mask(text)).toContain('https://host/?t=******');
  });

  it('is masked whole if another secret is its beginning', () => {
    const redactor = new Redactor();
    for (const text of ['token-1', 'token-1-of-import']) redactor.add(new Secret(text));
    expect(redactor.mask('token-1 token-1-of-import')).toBe('****** ******');
  });
});
