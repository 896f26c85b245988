import type { Day } from '../../base/days.ts';
import type { Secret } from '../../base/secrets.ts';
import type { Condition } from '../../config/source.ts';
import { headerText } from '../http/token.ts';
import { type Post, scopedPath } from '../http/transport.ts';

/** What one export asks for; `to` is always sent. */
export interface ExportRequest {
  readonly from: Day;
  readonly to: Day;
  readonly events: readonly string[];
  readonly eventsCondition: Condition;
  readonly properties: readonly string[];
  readonly propertiesCondition: Condition;
}

/** The request exactly as specified: lists only where they hold something, since an empty one means the same. */
export function exportPost(question: ExportRequest, serviceId: string, token: Secret, uncompressed = false): Post {
  const { events, properties } = question;
  return {
    path: scopedPath('/api/v1/export/event', serviceId),
    headers: {
      Authorization: `Bearer ${headerText(token, 'export_token')}`,
      'Content-Type': 'application/json',
      'Accept-Encoding': uncompressed ? 'identity' : 'gzip',
      'User-Agent': 'dfinery-elt',
    },
    body: JSON.stringify({
      ...(events.length > 0 && { events }),
      events_condition_type: question.eventsCondition,
      ...(properties.length > 0 && { properties }),
      properties_condition_type: question.propertiesCondition,
      from_date: question.from,
      to_date: question.to,
    }),
  };
}
