import type { Logger } from '../../src/base/log.ts';

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
