/*
 * The library: `sync` loads the days that a place lacks (docs/library.md). Its types need no other package.
 */
export { type ErrorKind, UserError } from './base/errors.ts';
export { type Configuration, type SyncOptions, type SyncResult, sync } from './cli/library.ts';
