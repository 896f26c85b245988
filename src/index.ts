/*
 * The library: what `sync`, `plan`, `status` and `verify` do on the command line (docs/library.md). Its types need no
 * other package.
 */
export { type ErrorKind, UserError } from './base/errors.ts';
export {
  type Configuration,
  type PlanOptions,
  type PlanResult,
  plan,
  type Status,
  type StoredPlaceOptions,
  type SyncOptions,
  type SyncResult,
  status,
  sync,
  type Verification,
  verify,
} from './cli/library.ts';
