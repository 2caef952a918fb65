import { type Diagnostic, encodeDiagnostic, formatWithHint } from '../../core/diagnostic.js';
import type { JsonObject } from '../../document/json.js';

/** Flags by the options of the library, as messages of rooms below `cli` name them: `options` are those of a verb. */
const flags: Readonly<Record<string, string>> = {
  'limits.maxEntries': '--max-entries',
  'limits.maxUnpackedSize': '--max-unpacked-size',
  'limits.maxRatio': '--max-ratio',
  'options.catalog': '--catalog',
  'options.channels': '--channel',
  'options.format': '--format',
  'options.installNamespace': '--install-namespace',
  'options.installed': '--installed',
  'options.pathTo': '--path-to',
  'options.secret': '--secret',
  'options.selector': '--selector',
  'options.set': '--prune',
  'options.versionRange': '--version',
  'place.namespace': '--namespace',
  'registry.authFile': '--authfile',
  'registry.allowedPrivateHosts': '--allow-private-host',
  'registry.caFile': '--ca-file',
  'registry.retryTimeoutMs': '--retry-timeout',
  'registry.skipTlsVerify': '--skip-tls-verify',
  'registry.useHttp': '--use-http',
  'session.followLinks': '--follow-links',
  'session.platform': '--platform',
};
const option = /(?<![\w./-])(?:limits|options|place|registry|session)\.[a-z]\w*(?![\w(]|\.\w)/g;

/** Returns a message with the flags of the options that it names. */
export function withFlags(text: string): string {
  return text.replace(option, (name) => (Object.hasOwn(flags, name) ? (flags[name] as string) : name));
}

/** Returns a diagnostic with the flags of the options that it names. */
export function nameFlags<D extends Pick<Diagnostic, 'subject' | 'problem' | 'hint'>>(diagnostic: D): D {
  const { subject, problem, hint } = diagnostic;
  return {
    ...diagnostic,
    problem: withFlags(problem),
    ...(subject !== undefined && { subject: withFlags(subject) }),
    ...(hint !== undefined && { hint: withFlags(hint) }),
  };
}

/** Returns a diagnostic as data, with flags; see `encodeDiagnostic`. */
export function encodeFinding(diagnostic: Diagnostic): JsonObject {
  return encodeDiagnostic(nameFlags(diagnostic));
}

/** Returns a diagnostic as text, with flags; see `formatWithHint`. */
export function formatFindingText(diagnostic: Diagnostic): string {
  return formatWithHint(nameFlags(diagnostic));
}
