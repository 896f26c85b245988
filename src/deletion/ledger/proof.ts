import { existsSync, statSync } from 'node:fs';
import { configFailure } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { ledgerFiles } from './files.ts';
import type { AfterLine, OpenLine } from './line.ts';
import { readLedgerFile } from './read.ts';
import { keyOfLedger } from './verify.ts';

/** One answer that the service gave for an id. */
export interface ProvedAnswer {
  readonly at: string;
  readonly outcome: AfterLine['outcome'];
  readonly code: string;
  readonly status: number | null;
  readonly run: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly base_url: string;
  readonly service_id: string;
  readonly requested_by: string | null;
  readonly reason: string | null;
}

export interface Proof {
  readonly v: 1;
  readonly kind: 'proof';
  /** Hex of the id's hash as it stands in the ledger; the id itself is not repeated. */
  readonly id: string;
  readonly erased: boolean;
  /** Every answer, oldest first. */
  readonly answers: readonly ProvedAnswer[];
  /** What is wrong with the ledger: an answer in a broken ledger proves nothing. */
  readonly problems: readonly string[];
}

/** When, and with what answers, an id was asked to be erased, from every file of a ledger. Memory: the answers found. */
export async function proveErasure(id: string, folder: string, given: Secret | undefined): Promise<Proof> {
  if (!existsSync(folder)) throw configFailure(`There is no ledger at ${folder}.`);
  if (!statSync(folder).isDirectory()) throw configFailure(`${folder} is no folder: wanted the ledger's folder.`);
  const key = keyOfLedger(folder, given);
  const hash = key.idHash(id).toString('hex');
  const answers: ProvedAnswer[] = [];
  const problems: string[] = [];
  for (const { path, name } of ledgerFiles(folder)) {
    let open: OpenLine | undefined;
    const { broken } = await readLedgerFile(path, key, (line, number) => {
      if (line.kind === 'open') open = line;
      if (line.kind === 'after' && line.id === hash && open) answers.push(answerOf(line, open, name, number));
    });
    if (broken) problems.push(`${name}, line ${broken.line}: ${broken.problem}.`);
  }
  const erased = problems.length === 0 && answers.some(({ outcome }) => outcome === 'done');
  return { v: 1, kind: 'proof', id: hash, erased, answers, problems };
}

function answerOf(line: AfterLine, open: OpenLine, file: string, number: number): ProvedAnswer {
  const { at, outcome, code, status, run } = line;
  const { base_url, service_id, requested_by = null, reason = null } = open;
  return { at, outcome, code, status, run, file, line: number, base_url, service_id, requested_by, reason };
}
