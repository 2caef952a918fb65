import { inContext } from '../../core/diagnostics-error.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type BundleVersion, parseBundleVersion } from '../../graph/bundle-version.js';
import { list } from '../command/flags.js';
import { encodeData } from '../reports/encode-data.js';
import { catalogForms } from '../../api/open-catalog.js';

/** Sentence of `--help` about the value of `--catalog`. */
export const referenceForms = `REF of --catalog is a ${catalogForms}.`;

/** Flag for the channels of upgrades. */
export const channelFlags = {
  channel: list('name', 'use only these channels (default: all)', { group: 'Selection' }),
};

/** Throws UsageError for an invalid package name of OLM v1. */
export function checkPackageName(name: string): void {
  const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
  if (name.length <= 253 && new RegExp(`^${label}(?:\\.${label})*$`).test(name)) return;
  throw new UsageError(`package ${quoteGo(name)}: not a DNS-1123 subdomain of up to 253 characters`);
}

/** Reads `NAME` or `NAME@VERSION`. Throws UsageError, and SemverError. */
export function parseInstalledBundle(text: string): { name: string; version: BundleVersion | undefined } {
  const position = text.lastIndexOf('@');
  const name = position < 0 ? text : text.slice(0, position);
  if (name === '') throw new UsageError('no bundle is named');
  if (position < 0) return { name, version: undefined };
  const version = text.slice(position + 1);
  return {
    name,
    version: inContext({ subject: `version ${quoteGo(version)}` }, () => parseBundleVersion(version)),
  };
}

/** Encodes data as JSON or YAML. */
export function getData(value: object, output: 'json' | 'yaml'): string {
  return encodeData(JSON.parse(JSON.stringify(value)) as object, output);
}
