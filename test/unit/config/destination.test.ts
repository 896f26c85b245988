import { describe, expect, it } from 'vitest';
import { parseDestinationConfig } from '../../../src/config/destination.ts';

const MINIMAL = { base_url: 'https://example.com', service_id: 'svc', import_token: 'canary-token-2' };
const NONE = {};

describe('the destination configuration', () => {
  it('is a dry run with caps by default', () => {
    expect(parseDestinationConfig(MINIMAL, NONE).config).toMatchObject({
      dryRun: true,
      externalIdField: 'external_id',
      maxDeletionsPerSync: 500,
      requestsPerMinute: 5_000,
      maxConcurrentRequests: 20,
      onRejected: 'continue',
      streams: [],
    });
  });

  it.each(['reason', 'requested_by'])('limits %s, which is written to the first line of the ledger', (name) => {
    expect(() => parseDestinationConfig({ ...MINIMAL, [name]: 'x'.repeat(4_000) }, NONE)).not.toThrow();
    expect(() => parseDestinationConfig({ ...MINIMAL, [name]: 'x'.repeat(4_001) }, NONE)).toThrow(
      `${name} is not usable, wanted at most 4000 characters`,
    );
  });

  it('accepts no text for dry_run', () => {
    expect(() => parseDestinationConfig({ ...MINIMAL, dry_run: 'false' }, NONE)).toThrow(
      /dry_run is not usable, wanted a boolean/,
    );
  });

  it('keeps secrets out of its messages', () => {
    expect(() => parseDestinationConfig({ ...MINIMAL, import_token: { a: 'canary' } }, NONE)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('canary') }),
    );
    const env = { DFINERY_LEDGER_KEY: 'canary-key-of-32-characters-or-so' };
    const { config } = parseDestinationConfig(MINIMAL, env);
    expect(config.ledgerKey?.reveal()).toBe('canary-key-of-32-characters-or-so');
    expect(JSON.stringify(config)).not.toContain('canary');
  });
});
