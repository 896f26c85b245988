import { configFailure } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import type { Post } from '../http/transport.ts';
import type { ExportQuestion } from './service.ts';

const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** The text of a token for a header. Throws a configuration failure, naming the key, where no header can carry it. */
export function headerText(token: Secret, key: string): string {
  const text = token.reveal();
  if (HEADER_TEXT.test(text)) return text;
  throw configFailure(`${key} is empty, or holds a character that no HTTP header can carry: copy the token again.`);
}

/** A path with the service it is for. */
export function scopedPath(path: string, serviceId: string): string {
  return `${path}?service_id=${encodeURIComponent(Buffer.from(serviceId).toString())}`;
}

/** The request exactly as specified: lists only where they hold something, since an empty one means the same. */
export function exportPost(question: ExportQuestion, serviceId: string, token: Secret): Post {
  const { events, properties } = question;
  return {
    path: scopedPath('/api/v1/export/event', serviceId),
    headers: {
      Authorization: `Bearer ${headerText(token, 'export_token')}`,
      'Content-Type': 'application/json',
      'Accept-Encoding': 'gzip',
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
