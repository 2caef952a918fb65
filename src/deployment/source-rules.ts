import { formatPath } from '../core/diagnostic.js';
import { redact } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { findReference } from '../core/reference.js';
import type { DocumentSource } from './source-fields.js';

/** Allowed sources in addition to registries, https and ssh. */
export interface SourceAllowances {
  /** Layouts, archives and repositories on this machine. */
  allowLocal?: boolean | undefined;
  /** Fields that skip certificate verification. */
  allowInsecure?: boolean | undefined;
}

/**
 * Returns why a source of a document is refused: authors of documents must not select files of the rendering machine,
 * nor send its credentials unverified.
 */
export function findRefusals(
  { source, path }: DocumentSource,
  { allowLocal, allowInsecure }: SourceAllowances,
): { message: string; hint: string }[] {
  const refusals: { message: string; hint: string }[] = [];
  const local = allowLocal === true ? undefined : localAddress(source);
  if (local !== undefined) {
    refusals.push({
      message: `${formatPath(path)}: ${quoteGo(redact(local))} is on this machine`,
      hint: 'use a registry, or an https or ssh URL, or allow local sources with --allow-local',
    });
  }
  if (source.kind !== 'configMaps' && source.insecureSkipTlsVerify === true && allowInsecure !== true) {
    refusals.push({
      message: `${formatPath(path)}: skips certificate verification`,
      hint: 'add its certificate authority with --ca-file, or allow this with --allow-insecure',
    });
  }
  return refusals;
}

/** Returns the address of a source on this machine. */
function localAddress(source: DocumentSource['source']): string | undefined {
  if (source.kind === 'image') {
    // Invalid references are reported when they are opened.
    const { transport = 'docker' } = findReference(source.ref) ?? {};
    return transport === 'docker' ? undefined : source.ref;
  }
  if (source.kind !== 'git') return undefined;
  const { repository } = source;
  if (URL.canParse(repository))
    return /^(?:https?|ssh):$/.test(new URL(repository).protocol) ? undefined : repository;
  // HOST:PATH, as for ssh.
  return /^[^/:]+:/.test(repository) ? undefined : repository;
}
