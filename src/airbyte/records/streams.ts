/** The streams of events, in the order in which `discover` lists them. */
export const EVENT_STREAMS = ['events', 'event_logs', 'event_items'] as const;
/** The stream of the export of profiles. */
export const PROFILE_STREAM = 'user_profiles';
type EventStreamName = (typeof EVENT_STREAMS)[number];
export type StreamName = EventStreamName | typeof PROFILE_STREAM;

export const isEventStream = (name: string): name is EventStreamName => EVENT_STREAMS.some((stream) => stream === name);

export const KEY = '_key';
export const RESCUED = '_rescued';
