import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../../support/new-folder.ts';
import { runHere } from '../../support/processes/command-line.ts';

const folder = newFolder();

it('demo again keeps away whom an erasure of its file has put on the list', async () => {
  const file = join(folder, 'people.duckdb');
  const ledgerEnv = { DFINERY_LEDGER_DIR: join(folder, 'ledger') };
  const env = { ...ledgerEnv, DFINERY_BASE_URL: 'http://127.0.0.1:9', DFINERY_SERVICE_ID: 'demo-service' };
  const { stdout } = await runHere(['demo', file]);
  // Views and carts have items, too.
  expect(stdout).toContain("  │ FROM event_items\n  │ WHERE df_event_name = 'df_purchase'\n");
  const forget = ['forget', '--in', 'duckdb', file, '--id', '00000017', '--purge-only', '--json'];
  const { hash } = JSON.parse((await runHere(forget, { env })).stdout);
  expect(await runHere([...forget, '--execute', '--confirm', hash], { env })).toMatchObject({ code: 0 });
  expect(await runHere(['demo', file], { env: ledgerEnv })).toMatchObject({ code: 0 });
  const person = ['person', '--in', 'duckdb', file, '--id', '00000017'];
  expect(await runHere(person, { env })).toMatchObject({ code: 0, stdout: '' });
});
