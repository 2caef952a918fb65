import { OpmateError, getMessage, redactUrls } from '../../../core/errors.js';

/** Status codes that the server sends. (Source: grpc/doc/statuscodes.md.) */
export const statusCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

export type StatusName = keyof typeof statusCodes;

/** Maximum length of an error text, which becomes a header. */
const maxMessageLength = 2048;

/** Failure of a call with a specific status. */
export class StatusError extends Error {
  readonly status: StatusName;

  constructor(status: StatusName, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns the status of a failure; NOT_FOUND becomes UNKNOWN, as in upstream. */
export function getStatus(error: unknown): StatusName {
  if (error instanceof StatusError) return error.status;
  if (!(error instanceof OpmateError)) return 'INTERNAL';
  switch (error.code) {
    case 'NOT_FOUND':
      return 'UNKNOWN';
    case 'USAGE':
      return 'INVALID_ARGUMENT';
    case 'UNSUPPORTED':
      return 'UNIMPLEMENTED';
    default:
      return 'INTERNAL';
  }
}

/** Encodes the text of a failure as `grpc-message`: truncated, redacted, percent-encoded. */
export function encodeStatusMessage(error: unknown): string {
  // Redact only what is sent: a name in a request may have megabytes.
  const message = redactUrls(getMessage(error).slice(0, 4 * maxMessageLength));
  const shown =
    message.length > maxMessageLength
      ? `${message.slice(0, maxMessageLength).replace(/[\ud800-\udbff]$/, '')}…`
      : message;
  return shown.replace(/[^\x20-\x24\x26-\x7e]+/g, (text) =>
    Buffer.from(text)
      .toString('hex')
      .replace(/../g, (byte) => `%${byte.toUpperCase()}`),
  );
}
