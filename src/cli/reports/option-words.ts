import { type Diagnostic, encodeDiagnostic, formatWithHint } from '../../core/diagnostic.js';
import type { JsonObject } from '../../document/json.js';

/**
 * Flags and commands by the options and verbs of the library, as messages of rooms below `cli` name them: `options` are
 * those of a verb, `mirror` those of mirror runs.
 */
const flags: Readonly<Record<string, string>> = {
  'api.captureImageSet': 'opmate mirror capture',
  'api.planMirror': 'opmate mirror plan',
  'api.readMirrorInventory': 'opmate mirror inventory',
  'api.viewCatalog': 'opmate view',
  'limits.maxEntries': '--max-entries',
  'limits.maxUnpackedSize': '--max-unpacked-size',
  'limits.maxRatio': '--max-ratio',
  'mirror.allowLocal': '--allow-local',
  'mirror.base': '--base',
  'mirror.configFile': '--config FILE',
  'mirror.dependencies': '--dependencies',
  'mirror.graphData': '--graph-data',
  'mirror.ignoreReleaseSignature': '--ignore-release-signature',
  'mirror.imageTimeoutMs': '--image-timeout',
  'mirror.locked': '--locked',
  'mirror.lockFile': '--lock',
  'mirror.maxNestedPaths': '--max-nested-paths',
  'mirror.onError': '--on-error',
  'mirror.workspace': '--workspace',
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
const option = /(?<![\w./-])(?:api|limits|mirror|options|place|registry|session)\.[a-z]\w*(?![\w(]|\.\w)/g;

/** Returns a message with the flags and commands of the options and verbs that it names. */
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
