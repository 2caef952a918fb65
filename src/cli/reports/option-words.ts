import { type Diagnostic, encodeDiagnostic, formatWithHint } from '../../core/diagnostic.js';
import type { JsonObject } from '../../document/json.js';

/** Flags by the options of a session, as messages of rooms below `cli` name them. */
const flags: Readonly<Record<string, string>> = {
  'limits.maxEntries': '--max-entries',
  'limits.maxUnpackedSize': '--max-unpacked-size',
  'limits.maxRatio': '--max-ratio',
  'registry.authFile': '--authfile',
  'registry.allowedPrivateHosts': '--allow-private-host',
  'registry.caFile': '--ca-file',
  'registry.retryTimeoutMs': '--retry-timeout',
  'registry.skipTlsVerify': '--skip-tls-verify',
  'registry.useHttp': '--use-http',
  'session.followLinks': '--follow-links',
  'session.platform': '--platform',
};
const option = /\b(?:limits|registry|session)\.\w+/g;

/** Returns a message with the flags of the options that it names. */
export function withFlags(text: string): string {
  return text.replace(option, (name) => (Object.hasOwn(flags, name) ? (flags[name] as string) : name));
}

/** Returns a diagnostic with the flags of the options that it names. */
export function nameFlags<D extends Pick<Diagnostic, 'problem' | 'hint'>>(diagnostic: D): D {
  const { problem, hint } = diagnostic;
  return { ...diagnostic, problem: withFlags(problem), ...(hint !== undefined && { hint: withFlags(hint) }) };
}

/** Returns a diagnostic as data, with flags; see `encodeDiagnostic`. */
export function encodeFinding(diagnostic: Diagnostic): JsonObject {
  return encodeDiagnostic(nameFlags(diagnostic));
}

/** Returns a diagnostic as text, with flags; see `formatWithHint`. */
export function formatFindingText(diagnostic: Diagnostic): string {
  return formatWithHint(nameFlags(diagnostic));
}
