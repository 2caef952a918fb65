import { OpmateError, getMessage, redact } from '../../../core/errors.js';

/** Status codes of gRPC that the server sends, by name. (Source: grpc/doc/statuscodes.md.) */
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

/** Longest text of an error: it becomes a header. */
const maxMessageLength = 2048;

/** A failure of a call that has a status of its own. */
export class StatusError extends Error {
  readonly status: StatusName;

  constructor(status: StatusName, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns the status of a failure. What upstream does not find is UNKNOWN there too. */
export function statusFor(error: unknown): StatusName {
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

/** Returns the text of a failure as a `grpc-message` header: shortened, redacted, percent-encoded. */
export function encodeStatusMessage(error: unknown): string {
  // What is cut off below need not be redacted: a name in a request may have megabytes.
  const message = redact(getMessage(error).slice(0, 4 * maxMessageLength));
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
