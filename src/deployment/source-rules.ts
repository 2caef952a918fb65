import { formatPath } from '../core/diagnostic.js';
import { redact } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { findReference } from '../core/reference.js';
import type { DocumentSource } from './source-fields.js';

/** What sources of documents may do in addition to reading registries, https and ssh. */
export interface SourceAllowances {
  /** Layouts, archives and repositories on this machine. */
  allowLocal?: boolean | undefined;
  /** Fields that skip the verification of certificates. */
  allowInsecure?: boolean | undefined;
}

/**
 * Returns why a source of a document is refused: whoever writes documents must not choose which files of the machine
 * that renders them are read, nor where its credentials go unverified.
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
      message: `${formatPath(path)}: skips the verification of certificates`,
      hint: 'add its certificate authority with --ca-file, or allow this with --allow-insecure',
    });
  }
  return refusals;
}

/** The address of a source that is on this machine. */
function localAddress(source: DocumentSource['source']): string | undefined {
  if (source.kind === 'image') {
    // What is no reference at all is told where it is opened.
    const { transport = 'docker' } = findReference(source.ref) ?? {};
    return transport === 'docker' ? undefined : source.ref;
  }
  if (source.kind !== 'git') return undefined;
  const { repository } = source;
  if (URL.canParse(repository))
    return /^(?:https?|ssh):$/.test(new URL(repository).protocol) ? undefined : repository;
  // HOST:PATH, as ssh has it.
  return /^[^/:]+:/.test(repository) ? undefined : repository;
}
