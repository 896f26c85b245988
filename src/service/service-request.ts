import type { OutgoingRequest } from '../http/transport.ts';

/** A request of an operation: `body` as JSON, in the scope of a service. */
export const serviceRequest = (
  path: string,
  serviceId: string,
  headers: OutgoingRequest['headers'],
  body: object,
): OutgoingRequest => ({
  method: 'POST',
  path: `${path}?service_id=${encodeURIComponent(serviceId)}`,
  headers: { 'Content-Type': 'application/json', 'User-Agent': 'dfinery-elt', ...headers },
  body: JSON.stringify(body),
});
