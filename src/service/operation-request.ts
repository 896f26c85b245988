// This folder: the operations of the service, each one request and its answer: exports in `export`, and deletions.
// `check.ts` tries one export. This file makes the requests of all operations. `outcome-table.ts` is the form of the
// tables that say what their answers mean; `quota-report.ts` reads what headers say of the quota. `clock-check.ts`
// compares the clocks of service and machine.

import type { OutgoingRequest } from '../http/transport.ts';

/** A request of an operation: `body` as JSON, in the scope of a service. */
export const operationRequest = (
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
