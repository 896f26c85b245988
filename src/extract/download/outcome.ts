import type { Day } from '../../base/days.ts';
import type { Span } from '../plan/layout.ts';
import type { Answered } from './ask.ts';

/** A window that can be handed on. */
export interface Fetch {
  readonly kind: 'window';
  readonly span: Span;
  readonly answer: Answered;
  /** Last day that the asked range contains under every reading still possible; undefined: none of the span. */
  readonly contains: Day | undefined;
}

/** What became of some days of the plan. */
export type Outcome =
  | Fetch
  | { readonly kind: 'gone'; readonly day: Day; readonly message: string }
  /** Days that the service says have not begun. */
  | { readonly kind: 'dropped'; readonly span: Span; readonly message: string };
