import type { SourceConfig } from '../../config/source.ts';
import type { ExtractDeps } from '../../extract/extract-deps.ts';
import type { MessageWriter } from '../protocol/writer.ts';
import type { Heartbeat } from './heartbeat.ts';

/** What the streams of one read share. */
export interface ReadDeps extends ExtractDeps {
  readonly config: SourceConfig;
  readonly writer: MessageWriter;
  readonly heartbeat: Heartbeat;
}
