import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { proveErasure, verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { InputFiles, type Json } from '../airbyte/connector.ts';
import {
  type Answer,
  type DeletionServer,
  Folders,
  json,
  quickClock,
  record,
  SUCCESS,
  startDeletionServer,
  state,
  write,
} from './deletions.ts';

export const NOW = Date.UTC(2026, 10, 21);

/** Runs of the destination's `write` that share one ledger's folder and one server. */
export class LedgerRuns {
  readonly folders = new Folders();
  readonly #files = new InputFiles();
  readonly server: DeletionServer;
  answer: Answer = (_deletion, response) => json(response, SUCCESS);

  private constructor(server: DeletionServer) {
    this.server = server;
  }

  static async start(): Promise<LedgerRuns> {
    let runs: LedgerRuns | undefined;
    const server = await startDeletionServer((...all) => runs?.answer(...all));
    runs = new LedgerRuns(server);
    return runs;
  }

  async close(): Promise<void> {
    await this.server.close();
    this.folders.close();
    this.#files.close();
  }

  go(ids: readonly string[], more: Json = {}, now = NOW) {
    const config = {
      base_url: this.server.url,
      service_id: 's',
      import_token: 'tok-1234',
      dry_run: false,
      ledger_dir: this.folders.ledger,
      ...more,
    };
    const input = [...ids.map((id) => record(id)), state(1)];
    return write({ files: this.#files, clock: quickClock(now), config, input });
  }

  pathOf(index: number): string {
    return join(this.folders.ledger, this.folders.ledgerFiles()[index]);
  }

  verify(head?: string) {
    return verifyLedger(this.folders.ledger, undefined, { head });
  }

  prove(id: string, folder = this.folders.ledger) {
    return proveErasure(id, { folder, key: undefined, service: { baseUrl: this.server.url, serviceId: 's' } });
  }

  /** Makes the last run look as if it had been killed: its closing line, and `more` bytes, are gone. */
  cutShort(more = 0): void {
    const path = this.pathOf(this.folders.ledgerFiles().length - 1);
    const text = readFileSync(path, 'utf8');
    truncateSync(path, text.lastIndexOf('\n', text.length - 2) + 1 - more);
  }
}
