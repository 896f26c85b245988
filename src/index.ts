/*
 * The library: what `sync`, `plan`, `status` and `verify` do on the command line (docs/library.md). Its types need no
 * other package.
 */
export { type ErrorKind, UserError } from './base/errors.ts';
export {
  type Configuration,
  type PlanOptions,
  plan,
  type StoredPlaceOptions,
  type SyncOptions,
  status,
  sync,
  verify,
} from './cli/library.ts';
export type { PlanResult, Status, Summary as SyncResult, Verification } from './cli/results.ts';
